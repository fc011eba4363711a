/**
 * /block and /block/transaction: immutable replies, served as the bytes that the index keeps. They
 * were checked against the API's description when they were made.
 */
import { LRUCache } from "lru-cache";
import type { Network } from "../../chain/networks.js";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";
import { type EndpointHandler, toRoute } from "../rosetta/endpoint.js";
import { SidecarError } from "../rosetta/errors.js";
import {
  type BlockIdentifier,
  parseBlockIdentifier,
  parseBlockReference,
  parseHash,
} from "../rosetta/identifiers.js";
import { inside, readFields } from "../rosetta/request-fields.js";
import type { BlockSource } from "./block-source.js";

/** Routes of blocks, and the short cut in front of them. */
export interface BlockRoutes {
  readonly routes: readonly HttpRoute[];
  /** The reply to a body that was answered before, byte for byte the same; else undefined. */
  cachedReply(request: {
    readonly method: string;
    readonly path: string;
    readonly rawBody: Uint8Array;
  }): Uint8Array | undefined;
}

/** Remembered request bodies; with the bound on their length about 50 MB at most. */
const MAX_KNOWN_BODIES = 65_536;

/** Longer bodies than a plain request needs are answered the long way. */
const MAX_KNOWN_BODY_BYTES = 512;

/** Makes the routes over a source of blocks. */
export function blockRoutes(options: {
  readonly network: Network;
  readonly source: BlockSource;
}): BlockRoutes {
  const { network, source } = options;
  const known = new LRUCache<string, BlockIdentifier>({ max: MAX_KNOWN_BODIES });

  const block: EndpointHandler = async (fields, { rawBody }) => {
    const reference = parseBlockReference(fields["block_identifier"], { at: "block_identifier" });
    const identifier = await source.resolve(reference);
    const encoded = await source.block(identifier);
    // Without an index or a hash the request means another block every two seconds.
    const isFixed = reference.index !== undefined || reference.hash !== undefined;
    if (isFixed && rawBody.length <= MAX_KNOWN_BODY_BYTES) {
      known.set(bodyKey(rawBody), identifier);
    }
    return { bytes: encoded.body };
  };

  const transaction: EndpointHandler = async (fields): Promise<HttpReply> => {
    const reference = parseBlockIdentifier(fields["block_identifier"], { at: "block_identifier" });
    const hash = parseTransactionHash(fields["transaction_identifier"]);
    const identifier = await source.resolve(reference);
    const encoded = await source.block(identifier);
    const bytes = encoded.transactionReply(hash);
    if (bytes === undefined) {
      throw new SidecarError("TRANSACTION_NOT_FOUND", { hash, index: identifier.index });
    }
    return { bytes };
  };

  return {
    routes: [
      toRoute({ path: "/block", fields: ["block_identifier"], handler: block }, network),
      toRoute(
        {
          path: "/block/transaction",
          fields: ["block_identifier", "transaction_identifier"],
          handler: transaction,
        },
        network,
      ),
    ],
    cachedReply({ method, path, rawBody }) {
      if (path !== "/block" || method !== "POST" || rawBody.length > MAX_KNOWN_BODY_BYTES) {
        return undefined;
      }
      const identifier = known.get(bodyKey(rawBody));
      return identifier === undefined ? undefined : source.kept(identifier)?.body;
    },
  };
}

/** Bytes as text, one character each: equal keys mean equal bodies. */
function bodyKey(rawBody: Uint8Array): string {
  return Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength).toString("latin1");
}

function parseTransactionHash(value: unknown) {
  const place = { at: "transaction_identifier" };
  const fields = readFields(value, place, ["hash"]);
  return parseHash(fields["hash"], inside(place, "hash"));
}
