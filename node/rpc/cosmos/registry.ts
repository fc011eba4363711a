/**
 * The one registry of queries: methods of the SDK's services with their descriptors and what answers
 * them. gRPC, REST, `abci_query` and the command line are faces of it: they differ in how a request
 * comes in and an answer goes out, never in what is answered.
 */
import type {
  MessageType,
  MethodType,
  ServiceType,
} from "../../../chain/protobuf/descriptor-file.js";
import type { Descriptors } from "../../../chain/protobuf/descriptors.js";
import { decodeRequest } from "../../../chain/protobuf/codec.js";
import { MessageReader, type ProtoMessage } from "../../../chain/protobuf/values.js";
import type { Height } from "../../../chain/hex.js";
import { withLimit } from "../../../runtime/process/task.js";
import type { ClientPlaces } from "../../../runtime/turns/client-places.js";
import type { Asker } from "../../../runtime/turns/resting-lane.js";
import { sharedPlaces } from "../shared-places.js";
import { invalidArgument, QueryFault } from "./errors.js";

/** Where state is read, and for how long somebody waits for it. */
export interface ReadContext {
  /** The state to answer from; between the oldest and the newest committed height. */
  readonly height: Height;
  readonly signal: AbortSignal;
}

/** The same of a request, and who asks. */
export interface AskedContext extends ReadContext, Asker {}

/** What a handler is told beside the request. */
export interface QueryContext extends AskedContext {
  /** To be called where the answer is of another height: a later page is of the first one's. */
  tellHeight(height: Height): void;
}

/** An answer, and the height that it is true for. */
export interface QueryAnswer {
  readonly answer: ProtoMessage;
  readonly height: Height;
}

/**
 * Answers one method. What it throws as QueryFault, as a coded fault of reading the request, or as
 * HISTORY_PRUNED is answered; anything else is a fault of ours.
 */
export type QueryHandler = (
  request: MessageReader,
  context: QueryContext,
) => ProtoMessage | Promise<ProtoMessage>;

/** Handlers by the method's path, `/package.Service/Method`. */
export type QueryHandlers = Readonly<Record<string, QueryHandler>>;

/** A method that is served. */
export interface ServedMethod {
  readonly service: string;
  readonly method: MethodType;
  readonly input: MessageType;
  readonly output: MessageType;
  /** Answers a request that was read; throws as handlers do. */
  run(request: ProtoMessage, context: AskedContext): Promise<QueryAnswer>;
}

/** Height of a request: digits; 0 and "" mean the newest. */
const HEIGHT_TEXT = /^[0-9]{1,15}$/;

/** Queries of one face that are answered at once, of all clients; more are told to come back. */
const MAX_RUNNING = 256;

/** A way that queries come: what one of them is asked too much takes no place of another's. */
export type QueryFace = "rest" | "grpc" | "abci_query";

/** The methods of a node. */
export class QueryRegistry {
  private readonly methods = new Map<string, ServedMethod>();
  private readonly served: readonly ServiceType[];
  private readonly running: Readonly<Record<QueryFace, ClientPlaces>> = {
    rest: sharedPlaces(MAX_RUNNING),
    grpc: sharedPlaces(MAX_RUNNING),
    abci_query: sharedPlaces(MAX_RUNNING),
  };

  /**
   * @param types what the methods and messages are
   * @param handlers every path has to be in `types`
   * @param latest newest committed height
   * @param timeoutMs time after which a query is given up
   */
  constructor(
    readonly types: Descriptors,
    handlers: QueryHandlers,
    private readonly latest: () => Height,
    private readonly timeoutMs: number,
  ) {
    for (const [path, handler] of Object.entries(handlers)) {
      this.methods.set(path, this.servedMethod(path, handler));
    }
    const names = new Set([...this.methods.values()].map(({ service }) => service));
    this.served = types.services().filter(({ name }) => names.has(name));
  }

  /** A method by its path; undefined where it is not served. */
  find(path: string): ServedMethod | undefined {
    return this.methods.get(path);
  }

  /** All methods that are served. */
  all(): readonly ServedMethod[] {
    return [...this.methods.values()];
  }

  /** Services of which at least one method is served. */
  services(): readonly ServiceType[] {
    return this.served;
  }

  /** Newest committed height. */
  latestHeight(): Height {
    return this.latest();
  }

  /**
   * All that a face does for one query, from the reading of it to the answer.
   * @param asker whose signal fires when nobody waits for the answer any more
   * @param work ends with its signal, which fires with a TimeoutError when the query takes too long
   * @throws UNAVAILABLE where too many run already, in all or of this client
   */
  async bounded<Result>(
    face: QueryFace,
    { client, signal: gone }: Asker,
    work: (asker: Asker) => Promise<Result>,
  ): Promise<Result> {
    const places = this.running[face];
    if (!places.hasRoom(client)) {
      throw new QueryFault("UNAVAILABLE", "too many queries at once, try again");
    }
    const giveBack = places.take(client);
    try {
      return await withLimit([gone], this.timeoutMs, (signal) => work({ client, signal }));
    } finally {
      giveBack();
    }
  }

  /**
   * The height that a client names in `x-cosmos-block-height`.
   * @throws INVALID_ARGUMENT for what is no height, or one that is not there yet
   */
  heightOf(text: string | undefined): Height {
    const latest = this.latest();
    if (text === undefined || text === "") return latest;
    if (!HEIGHT_TEXT.test(text)) {
      throw invalidArgument(`invalid height header "x-cosmos-block-height": ${text}`);
    }
    const height = Number(text);
    if (height > latest) {
      throw invalidArgument(
        "cannot query with height in the future; please provide a valid height: invalid height",
      );
    }
    return height === 0 ? latest : height;
  }

  private servedMethod(path: string, handler: QueryHandler): ServedMethod {
    const [, service = "", name = ""] = path.split("/");
    const method = this.types.service(service)?.methods.get(name);
    if (method === undefined) throw new RangeError(`the descriptors have no method ${path}`);
    return {
      service,
      method,
      input: this.types.message(method.input),
      output: this.types.message(method.output),
      run: async (request, { height, signal, client }) => {
        let told = height;
        const tellHeight = (other: Height) => {
          told = other;
        };
        const context = { height, signal, client, tellHeight };
        const answer = await handler(new MessageReader(request), context);
        return { answer, height: told };
      },
    };
  }
}

/**
 * Untrusted bytes to a request.
 * @throws INVALID_ARGUMENT
 */
export function readRequest(served: ServedMethod, bytes: Uint8Array): ProtoMessage {
  try {
    return decodeRequest(served.input, bytes);
  } catch (cause) {
    throw new QueryFault("INVALID_ARGUMENT", `the request is no ${served.input.name}`, { cause });
  }
}
