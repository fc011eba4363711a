/** /events/blocks: every block was added once, in order; its sequence is its height. */
import type { Height } from "../../chain/hex.js";
import type { Network } from "../../chain/networks.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";
import { toRoute } from "../rosetta/endpoint.js";
import { SidecarError } from "../rosetta/errors.js";
import type { BlockIdentifier } from "../rosetta/identifiers.js";
import type { IndexReader } from "../index/index-reader.js";
import { type Fields, readIndex, readMaybe } from "../rosetta/request-fields.js";

/** What the route reads. */
export interface EventRouteOptions {
  readonly network: Network;
  readonly index: Pick<IndexReader, "identifierAt">;
  /** The newest block that the index serves. */
  readonly tip: () => Promise<BlockIdentifier>;
}

/** Events of a page when the request does not say. */
const DEFAULT_LIMIT = 100;

/** Most events of a page, about 150 KB; Rosetta lets a server return fewer than asked for. */
const MAX_LIMIT = 1_000;

/**
 * The route. Blocks are final, so no event is ever `block_removed`.
 * @throws EVENTS_OUT_OF_RANGE when the offset is beyond the next event to come
 */
export function eventRoutes({ network, index, tip }: EventRouteOptions): HttpRoute[] {
  const endpoint = {
    path: "/events/blocks",
    fields: ["offset", "limit"],
    async handler(fields: Fields) {
      const asked = readMaybe(fields["offset"], { at: "offset" }, readIndex);
      const atMost = readMaybe(fields["limit"], { at: "limit" }, readIndex) ?? DEFAULT_LIMIT;
      const limit = Math.min(atMost, MAX_LIMIT);
      const { index: newest } = await tip();
      // Whoever has seen all events asks for the next one and is told that there is none yet. One
      // beyond that was never announced here: its client follows another chain, or is ahead of us.
      if (asked !== undefined && asked > newest + 1) {
        throw new SidecarError("EVENTS_OUT_OF_RANGE", { offset: asked, max_sequence: newest });
      }
      const first = asked ?? Math.max(0, newest + 1 - limit);
      const count = Math.min(limit, newest + 1 - first);
      const events = Array.from({ length: count }, (_unused, nth) => eventOf(index, first + nth));
      return { body: { max_sequence: newest, events } };
    },
  };
  return [toRoute(endpoint, network)];
}

function eventOf(index: EventRouteOptions["index"], height: Height) {
  const identifier = index.identifierAt(height);
  if (identifier === undefined) {
    throw new SidecarError("INTERNAL", { reason: "the index lacks a block", index: height });
  }
  return { sequence: height, block_identifier: identifier, type: "block_added" };
}
