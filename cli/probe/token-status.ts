/** What the running sidecar says about a token: whether it knows it and still believes it. */
import { z } from "zod";
import { type Address, toChecksumAddress } from "../../chain/address.js";
import { BLOCKCHAIN_NAME, type NetworkName } from "../../chain/networks.js";
import { createHttpPoster, type HttpPoster } from "../../rpc-client/http-post.js";

/** Standing of a token in the sidecar. */
export type TokenStanding =
  /** `judgedTo` is the newest block that it has read; older servers do not say. */
  | { readonly state: "followed"; readonly judgedTo?: number }
  /** Its operations are left out from this block on, because they did not add up. */
  | { readonly state: "quarantined"; readonly fromHeight: number; readonly reason: string }
  /** The sidecar started before the token was listed. */
  | { readonly state: "not loaded" }
  /** The sidecar does not answer, or has no such method. */
  | { readonly state: "unknown" };

/** Time for one answer; the sidecar reads it from memory. */
const TIMEOUT_MS = 5_000;

/** Longest answer that is read; a token's standing has a few hundred bytes. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Rosetta number of UNKNOWN_CURRENCY. */
const UNKNOWN_CURRENCY = 208;

const result = z.object({
  quarantined: z.boolean(),
  judged_to_index: z.number().optional(),
  quarantined_from_index: z.number().optional(),
  reason: z.string().optional(),
});

/** Asks `/call token_status` for each contract, in their order. */
export async function readTokenStandings(
  sidecar: { readonly url: string; readonly network: NetworkName },
  contracts: readonly Address[],
  signal: AbortSignal,
): Promise<TokenStanding[]> {
  const poster = createHttpPoster({
    url: sidecar.url,
    timeoutMs: TIMEOUT_MS,
    maxResponseBytes: MAX_ANSWER_BYTES,
  });
  try {
    const standings: TokenStanding[] = [];
    for (const contract of contracts) {
      const body = JSON.stringify({
        network_identifier: { blockchain: BLOCKCHAIN_NAME, network: sidecar.network },
        method: "token_status",
        parameters: { contract_address: toChecksumAddress(contract) },
      });
      const standing = await ask(poster, body, signal);
      standings.push(standing);
      // One that is away is asked once, not a thousand times.
      if (standing.state === "unknown") return contracts.map(() => standing);
    }
    return standings;
  } finally {
    poster.close();
  }
}

async function ask(poster: HttpPoster, body: string, signal: AbortSignal): Promise<TokenStanding> {
  try {
    const reply = await poster.post(body, { signal, path: "/call" });
    const answer: unknown = JSON.parse(reply.body.toString("utf8"));
    if (reply.status === 200) return standingOf(z.object({ result }).parse(answer).result);
    const { code } = z.object({ code: z.number() }).parse(answer);
    return { state: code === UNKNOWN_CURRENCY ? "not loaded" : "unknown" };
  } catch (error) {
    if (signal.aborted) throw error;
    return { state: "unknown" }; // Away or another program: the check goes on without it.
  }
}

function standingOf(status: z.output<typeof result>): TokenStanding {
  const { judged_to_index: judgedTo } = status;
  if (!status.quarantined) {
    return { state: "followed", ...(judgedTo === undefined ? {} : { judgedTo }) };
  }
  const { quarantined_from_index: fromHeight = 0, reason = "no reason given" } = status;
  return { state: "quarantined", fromHeight, reason };
}
