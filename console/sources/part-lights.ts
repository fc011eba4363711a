/** Whether the parts of the kit are ready, as each says of itself, and how old the newest block is. */
import { errorMessage } from "../../chain/errors.js";
import { blockAgeSeconds, blockAgeVerdict, type Verdict } from "../../chain/consensus/block-age.js";
import { readBlockInterval } from "../../rpc-client/readiness/block-interval.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import { httpExchange } from "../../runtime/http/outgoing/http-exchange.js";
import { routeOf } from "../../runtime/http/outgoing/route-url.js";
import type { Clock } from "../../runtime/process/clock.js";
import { limitedSignal } from "../../runtime/process/task.js";

/** A part with its light. */
export interface PartLight {
  readonly part: string;
  readonly verdict: Verdict;
  /** Why not, in the part's own words; "" where all is well. */
  readonly reason: string;
}

/** The node's newest block. */
export interface HeadLight {
  readonly verdict: Verdict;
  readonly height: number | undefined;
  /** Below zero where its time is ahead of the clock. */
  readonly ageSeconds: number | undefined;
}

/** A part that is asked. */
export interface WatchedPart {
  readonly part: string;
  readonly url: string;
  /** True where payments go on without it. */
  readonly isDispensable: boolean;
}

/** A part that does not answer within this time counts as not answering. */
const PROBE_TIMEOUT_MS = 3_000;

/** Of a node that does not answer, or has no block. */
const NO_HEAD: HeadLight = { verdict: "fail", height: undefined, ageSeconds: undefined };

/** Longest reason that is shown. */
const MAX_REASON_CHARACTERS = 4_096;

/** Longer answers are none of ours. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Asks every part once; never throws but for the signal's reason. */
export function readPartLights(
  parts: readonly WatchedPart[],
  signal: AbortSignal,
): Promise<readonly PartLight[]> {
  return Promise.all(parts.map((part) => readPart(part, signal)));
}

async function readPart(
  { part, url, isDispensable }: WatchedPart,
  signal: AbortSignal,
): Promise<PartLight> {
  const bad: Verdict = isDispensable ? "warn" : "fail";
  try {
    const limited = limitedSignal([signal], PROBE_TIMEOUT_MS);
    const limits = { maxBytes: MAX_ANSWER_BYTES, signal: limited };
    const { status, body } = await httpExchange(routeOf(url, "/ready"), {}, limits);
    if (status === 200) return { part, verdict: "pass", reason: "" };
    const reason = body.length > MAX_REASON_CHARACTERS ? undefined : reasonOf(body);
    return { part, verdict: bad, reason: typeof reason === "string" ? reason : "" };
  } catch (error) {
    signal.throwIfAborted();
    return { part, verdict: bad, reason: errorMessage(error) };
  }
}

function reasonOf(body: string): unknown {
  try {
    return Reflect.get(Object(JSON.parse(body)), "reason");
  } catch {
    return undefined; // Not a part's own words: that it is not ready has to do.
  }
}

/** Asks the node; one that does not answer has no head. */
export async function readHeadLight(
  evm: Pick<EvmClient, "getBlockHeader">,
  clock: Clock,
  signal: AbortSignal,
): Promise<HeadLight> {
  try {
    const limited = limitedSignal([signal], PROBE_TIMEOUT_MS);
    const header = await evm.getBlockHeader("latest", { signal: limited });
    if (header === undefined) return NO_HEAD;
    const intervalMs = await readBlockInterval(evm, header, { signal: limited });
    const ageSeconds = blockAgeSeconds(header.timestampSeconds * 1_000, clock.nowMs());
    const verdict = blockAgeVerdict(ageSeconds, intervalMs);
    return { verdict, height: header.height, ageSeconds };
  } catch {
    signal.throwIfAborted();
    return NO_HEAD;
  }
}
