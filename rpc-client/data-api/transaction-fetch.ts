/** Asks for transactions by their places: those of many blocks that are asked for at once, in one call. */
import type { Hash32, Height } from "../../chain/hex.js";
import { present } from "../../chain/errors.js";
import { readList, readObject } from "../answer-fields.js";
import { badAnswer } from "../errors.js";
import { type DataTransaction, parseJson, parseTransaction } from "./data-block.js";

/** Bounds of one call; see the sidecar's `block_transactions`. */
const MAX_BLOCKS = 64;
const MAX_TRANSACTIONS = 4_096;

/** Sends `/call` and gives the body of its reply. */
export type SendCall = (
  method: string,
  parameters: object,
  options: { readonly signal: AbortSignal },
) => Promise<Buffer>;

/** A block as it is named in a request. */
interface BlockPlace {
  readonly height: Height;
  readonly hash: Hash32;
}

/** Transactions of one block, and who waits for them. */
interface Asked {
  readonly block: BlockPlace;
  readonly positions: readonly number[];
  readonly found: DataTransaction[];
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/** Fetches of one client. */
export class TransactionFetch {
  /** What was asked for in this moment, by the signal that ends it. */
  readonly #waiting = new Map<AbortSignal, Asked[]>();

  constructor(private readonly send: SendCall) {}

  /**
   * The transactions of a block at these positions, in their order.
   * @throws BAD_ANSWER, and what `send` throws
   */
  async transactions(
    block: BlockPlace,
    positions: readonly number[],
    signal: AbortSignal,
  ): Promise<readonly DataTransaction[]> {
    const found: DataTransaction[] = [];
    await new Promise<void>((done, failed) => {
      const asked = { block, positions, found, done, failed };
      const together = this.#waiting.get(signal);
      together?.push(asked);
      if (together !== undefined) return;
      this.#waiting.set(signal, [asked]);
      queueMicrotask(() => void this.#fetch(signal));
    });
    return found;
  }

  async #fetch(signal: AbortSignal): Promise<void> {
    const all = this.#waiting.get(signal) ?? [];
    this.#waiting.delete(signal);
    try {
      for (let rest = all; rest.length > 0; rest = rest.filter(isOpen)) {
        await this.#fetchSome(rest, signal);
        for (const asked of rest) if (!isOpen(asked)) asked.done();
      }
    } catch (error) {
      // Those that are done have told so, and do not listen any more.
      for (const asked of all) asked.failed(error);
    }
  }

  /** One call; takes at least one transaction of the answer. */
  async #fetchSome(rest: readonly Asked[], signal: AbortSignal): Promise<void> {
    const parts = portionOf(rest);
    const blocks = parts.map(({ asked: { block }, positions }) => ({
      block_identifier: { index: block.height, hash: block.hash },
      positions,
    }));
    const body = await this.send("block_transactions", { blocks }, { signal });
    const answer = readObject(parseJson(body.toString("utf8")), "answer");
    const values = readList(readObject(answer["result"], "result")["transactions"], "transactions");
    const wanted = parts.flatMap(({ asked, positions }) =>
      positions.map((position) => ({ asked, position })),
    );
    if (values.length === 0 || values.length > wanted.length) {
      throw badAnswer("other transactions than were asked for");
    }
    values.forEach((value, index) => {
      const { asked, position } = present(wanted[index], "wanted transaction");
      asked.found.push(parseTransaction(value, position));
    });
  }
}

function isOpen({ positions, found }: Asked): boolean {
  return found.length < positions.length;
}

/** What one call asks for, from the first that is missing on. */
function portionOf(
  rest: readonly Asked[],
): { readonly asked: Asked; readonly positions: readonly number[] }[] {
  const parts: { asked: Asked; positions: readonly number[] }[] = [];
  let room = MAX_TRANSACTIONS;
  for (const asked of rest.slice(0, MAX_BLOCKS)) {
    if (room === 0) break;
    const positions = asked.positions.slice(asked.found.length, asked.found.length + room);
    parts.push({ asked, positions });
    room -= positions.length;
  }
  return parts;
}
