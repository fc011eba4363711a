/** What one request (a call or a whole batch) carries while it is answered. */
import { setOwner, type WorkOwner } from "../../../runtime/process/work-owner.js";
import { clientOf } from "../../../runtime/turns/client-address.js";
import { RpcFault } from "./errors.js";
import { type LargeLane, LargePlace } from "./large-lane.js";
import type { CallContext, Subscriber } from "./method.js";

/** Context of one request. The signal is made only when a method asks for it. */
export class RequestContext implements CallContext {
  private controller: AbortController | undefined;
  private timer: NodeJS.Timeout | undefined;
  private callbacks: (() => void)[] = [];
  private gone = false;
  private isFinished = false;
  private place: LargePlace | undefined;
  /** Read at once: a connection that has ended may not know any more whose it was. */
  private readonly remoteAddress: string | undefined;

  /** @param connection where the request comes from */
  constructor(
    private readonly timeoutMs: number,
    private readonly reader: Subscriber | undefined,
    connection: { readonly remoteAddress?: string } = {},
  ) {
    this.remoteAddress = connection.remoteAddress;
  }

  /** Nobody behind a connection that has ended: what it subscribed to now would outlive it. */
  get subscriber(): Subscriber | undefined {
    return this.gone ? undefined : this.reader;
  }

  get client(): string {
    return clientOf(this.remoteAddress);
  }

  /** Whose what runs for it without the signal is: that is made for who asks for it. */
  get owner(): WorkOwner {
    return { client: this.client };
  }

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      setOwner(this.controller.signal, this.owner);
      if (this.gone) this.abort();
      this.timer = setTimeout(() => this.abort(), this.timeoutMs);
    }
    return this.controller.signal;
  }

  afterReply(callback: () => void): void {
    this.callbacks.push(callback);
  }

  /** Whose lane the answer takes when it becomes large. */
  useLane(lane: LargeLane): void {
    this.place = new LargePlace(lane, this.client, (leave) => {
      if (this.isFinished) leave();
      else this.afterReply(leave);
    });
  }

  async becameLarge(): Promise<void> {
    await this.place?.taken(this.signal);
  }

  /** The client went away: what still runs for it ends. After the answer nothing does. */
  cancel(): void {
    if (this.isFinished) return;
    this.gone = true;
    if (this.controller !== undefined) this.abort();
  }

  /** The answer has been handed to the socket. */
  finish(): void {
    this.isFinished = true;
    clearTimeout(this.timer);
    for (const callback of this.callbacks) callback();
    this.callbacks = [];
  }

  private abort(): void {
    this.controller?.abort(new RpcFault("REQUEST_TIMED_OUT", "request timed out"));
  }
}
