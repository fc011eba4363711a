/**
 * The light client: from a height and hash that the operator trusts to any other height, over
 * servers that need not be trusted. Every answer of the first server is compared with those of all
 * others before it is believed; where two differ, nothing is believed any more. Commits may differ,
 * and no header names its own: one that proves nothing is its server's fault alone.
 */
import { LRUCache } from "lru-cache";
import {
  type ConsensusHeader,
  hashConsensusHeader,
} from "../../../chain/consensus/consensus-header.js";
import {
  isLightExpired,
  type LightBlock,
  LightError,
  type LightRules,
  verifyBackwards,
  verifyLightBlock,
  verifySelfSigned,
} from "../../../chain/consensus/light.js";
import { msToNs } from "../../../chain/consensus/block-id.js";
import { errorCode, errorMessage } from "../../../chain/errors.js";
import type { Hash32, Height } from "../../../chain/hex.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { isMarkedRetriable } from "../../../runtime/process/task.js";
import { HEADERS_PER_PAGE } from "./light-json.js";
import type { LightProvider } from "./light-rpc.js";
import { hasSamePriorities } from "./light-validators.js";
import { StateSyncError } from "../state-sync-error.js";

/** What a light client starts from. */
export interface LightClientOptions {
  /** At least two; the first that answers is the one that is compared with the others. */
  readonly providers: readonly LightProvider[];
  readonly chainId: string;
  readonly trust: {
    readonly height: Height;
    /** Hash of the header of that height, which the operator knows to be right. */
    readonly hash: Hash32;
    readonly periodNs: bigint;
  };
  readonly verifySignature: LightRules["verifySignature"];
  readonly clock: Clock;
  readonly log: Logger;
}

/** More than any bisection leaves; what is forgotten is verified again. */
const MAX_VERIFIED = 1_000;

/** Where a bisection looks next, in sixteenths of the way, as in CometBFT. */
const PIVOT_SIXTEENTHS = 9;

/** What a server says of a height. */
interface Told {
  readonly server: string;
  readonly block: LightBlock;
}

/** A height by all servers that answered: one header, one set, and a commit of each. */
type Agreed = readonly [Told, ...Told[]];

/** Verified headers of any height. */
export class LightClient {
  /** What was verified, by height. */
  private readonly verified = new LRUCache<Height, LightBlock>({ max: MAX_VERIFIED });

  constructor(private readonly options: LightClientOptions) {}

  /**
   * The verified header of a height.
   * @throws LIGHT_DIVERGENCE, TRUST_HASH_MISMATCH, LIGHT_EXPIRED, LIGHT_INVALID, LIGHT_UNTRUSTED;
   * LIGHT_FUTURE, SERVER_UNAVAILABLE, or the signal's reason
   */
  async verify(height: Height, signal: AbortSignal): Promise<LightBlock> {
    await this.trustRoot(signal);
    const known = this.verified.get(height);
    if (known !== undefined) return known;
    const agreed = await this.agreed(height, signal);
    const below = [...this.verified.values()].filter(({ header }) => header.height < height);
    const closest = below.reduce<LightBlock | undefined>((best, one) => {
      return best === undefined || one.header.height > best.header.height ? one : best;
    }, undefined);
    const isFromAbove = closest === undefined || this.isOnlyTrustedFromAbove(closest, height);
    const target = isFromAbove
      ? await this.verifyDownTo(agreed, signal)
      : await this.bisect(closest, agreed, signal);
    this.verified.set(height, target);
    return target;
  }

  /** A header that has expired proves nothing above it; a newer one that has not proves what is below. */
  private isOnlyTrustedFromAbove(closestBelow: LightBlock, height: Height): boolean {
    const rules = this.rules();
    if (!isLightExpired(closestBelow.header, rules)) return false;
    return this.headersAbove(height).some((header) => !isLightExpired(header, rules));
  }

  /** Verified headers above a height. */
  private headersAbove(height: Height): ConsensusHeader[] {
    return [...this.verified.values()]
      .map(({ header }) => header)
      .filter((header) => header.height > height);
  }

  /** Begins with what the operator trusts. */
  private async trustRoot(signal: AbortSignal): Promise<void> {
    const { height, hash } = this.options.trust;
    if (this.verified.has(height)) return;
    const agreed = await this.agreed(height, signal);
    const found = hashConsensusHeader(headerOf(agreed));
    if (found !== hash) {
      throw new StateSyncError(
        "TRUST_HASH_MISMATCH",
        `the header of height ${height} has the hash ${found}, trusted is ${hash}: check ` +
          "statesync.trust_height and trust_hash against a server that you know",
        { details: { height, found, trusted: hash } },
      );
    }
    const rules = this.rules();
    this.verified.set(
      height,
      this.proven(agreed, (root) => verifySelfSigned(root, rules)),
    );
  }

  /** Bisects upwards; every header on the way is verified and kept. */
  private async bisect(from: LightBlock, target: Agreed, signal: AbortSignal): Promise<LightBlock> {
    let lower = from;
    const above = [target];
    for (let depth = 0; ; ) {
      const next = above[depth];
      if (next === undefined) throw new RangeError("a bisection has always a next header");
      const verified = this.verifiedBy(lower, next);
      if (verified !== undefined) {
        this.verified.set(verified.header.height, verified);
        if (depth === 0) return verified;
        lower = verified;
        above.length = depth;
        depth = 0;
        continue;
      }
      if (depth === above.length - 1) {
        const gap = headerOf(next).height - lower.header.height;
        const pivot = lower.header.height + Math.floor((gap * PIVOT_SIXTEENTHS) / 16);
        above.push(await this.agreed(pivot, signal));
      }
      depth++;
    }
  }

  /** Undefined when another header in between may lead there. */
  private verifiedBy(trusted: LightBlock, next: Agreed): LightBlock | undefined {
    const rules = this.rules();
    try {
      return this.proven(next, (block) => verifyLightBlock(trusted, block, rules));
    } catch (error) {
      if (errorCode(error) === "LIGHT_UNTRUSTED") return undefined;
      throw error;
    }
  }

  /**
   * The block of the first server whose commit passes. Throws LIGHT_UNTRUSTED where one is only too weak,
   * else the last server's LIGHT_INVALID, with its name; other faults are of the header, which all have.
   */
  private proven(agreed: Agreed, check: (block: LightBlock) => void): LightBlock {
    let fault: unknown;
    for (const { server, block } of agreed) {
      try {
        check(block);
        return block;
      } catch (cause) {
        const code = errorCode(cause);
        if (code === "LIGHT_UNTRUSTED") {
          fault = cause;
          continue;
        }
        if (code !== "LIGHT_INVALID") throw cause;
        const details = { server, height: block.header.height };
        this.options.log.warn({ ...details, err: cause }, "a light server's answer proves nothing");
        if (errorCode(fault) === "LIGHT_UNTRUSTED") continue;
        const message = `${errorMessage(cause)}, by each server, the last of them ${server}`;
        fault = new LightError("LIGHT_INVALID", message, { details, cause });
      }
    }
    throw fault;
  }

  /** Follows the hashes of last blocks down from the lowest verified header above. */
  private async verifyDownTo(agreed: Agreed, signal: AbortSignal): Promise<LightBlock> {
    const target = headerOf(agreed);
    const all = this.headersAbove(target.height);
    let lowest = all.reduce((low, header) => (header.height < low.height ? header : low));
    const rules = this.rules();
    // All are of one chain: one of them that is still trusted vouches for those below.
    if (all.every((header) => isLightExpired(header, rules))) {
      throw new LightError("LIGHT_EXPIRED", "all trusted headers have expired", {
        details: { height: lowest.height },
      });
    }
    const to = target.height;
    while (lowest.height > to) {
      const from = lowest.height - 1;
      const range = { from, to: Math.max(to, from - HEADERS_PER_PAGE + 1) };
      const page = await headersBelow(this.options.providers, lowest, range, signal);
      lowest = page.at(-1) ?? lowest;
    }
    if (hashConsensusHeader(lowest) !== hashConsensusHeader(target)) {
      throw new LightError("LIGHT_INVALID", "the header is not one of the trusted chain", {
        details: { height: to },
      });
    }
    // Its hash is proven; its commit and validators are held against it.
    return this.proven(agreed, (block) => verifySelfSigned(block, rules));
  }

  /** What all servers that answer say of a height: one alone could tell what it likes. */
  private async agreed(height: Height, signal: AbortSignal): Promise<Agreed> {
    const { providers, log } = this.options;
    const asked = await Promise.allSettled(
      providers.map(async (provider) => {
        const block = await provider.lightBlock(height, signal);
        return { server: provider.name, block };
      }),
    );
    signal.throwIfAborted();
    const answers = asked.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const faults = asked.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
    for (const fault of faults) log.debug({ err: fault, height }, "a light server did not answer");
    const [first, ...others] = answers;
    if (first === undefined || others.length === 0) {
      throw new StateSyncError(
        "SERVER_UNAVAILABLE",
        `only ${answers.length} of ${providers.length} servers have height ${height}, at least ` +
          "two are needed",
        { retriable: true, details: { height }, cause: faults[0] },
      );
    }
    for (const other of others) {
      const difference = differenceOf(first.block, other.block);
      if (difference === undefined) continue;
      throw new StateSyncError(
        "LIGHT_DIVERGENCE",
        `servers ${first.server} and ${other.server} differ in ${difference} of ` +
          `height ${height}: at least one of them lies, nothing is taken from either`,
        { details: { height, servers: [first.server, other.server] } },
      );
    }
    return [first, ...others];
  }

  private rules(): LightRules {
    const { chainId, trust, verifySignature, clock } = this.options;
    const nowNs = msToNs(Math.floor(clock.nowMs()));
    return { chainId, trustPeriodNs: trust.periodNs, nowNs, verifySignature };
  }
}

/** The header that all servers have. */
function headerOf([first]: Agreed): ConsensusHeader {
  return first.block.header;
}

/**
 * Headers from the first server that has them; whoever asks proves them by hashes.
 * @throws SERVER_UNAVAILABLE, SERVER_ANSWER_INVALID: the last server's fault
 */
export async function headersOfAny(
  providers: readonly LightProvider[],
  range: { readonly from: Height; readonly to: Height },
  signal: AbortSignal,
): Promise<readonly ConsensusHeader[]> {
  return fromAny(providers, (provider) => provider.headers(range, signal), signal);
}

/**
 * Headers that lead down from a proven one, from the first server that has them: what one of them has
 * made up says nothing of the others.
 * @throws LIGHT_INVALID, SERVER_UNAVAILABLE, SERVER_ANSWER_INVALID: the last server's fault
 */
export async function headersBelow(
  servers: readonly Pick<LightProvider, "headers">[],
  above: ConsensusHeader,
  range: { readonly from: Height; readonly to: Height },
  signal: AbortSignal,
): Promise<readonly ConsensusHeader[]> {
  const ask = async (server: Pick<LightProvider, "headers">) => {
    const headers = await server.headers(range, signal);
    let lowest = above;
    for (const header of headers) {
      verifyBackwards(header, lowest);
      lowest = header;
    }
    return headers;
  };
  return fromAny(servers, ask, signal);
}

/**
 * The first answer that a server gives. Throws a fault that may pass, where a server had one, else the last
 * server's; or the signal's reason.
 */
export async function fromAny<Server, T>(
  servers: readonly Server[],
  ask: (server: Server) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  let fault: unknown;
  for (const server of servers) {
    try {
      return await ask(server);
    } catch (error) {
      signal.throwIfAborted();
      // Another one may be false: it says nothing about the one that is busy.
      if (!isMarkedRetriable(fault)) fault = error;
    }
  }
  throw fault;
}

/** In what two answers differ. Commits may: each server has seen other signatures. */
function differenceOf(one: LightBlock, other: LightBlock): string | undefined {
  if (hashConsensusHeader(one.header) !== hashConsensusHeader(other.header)) return "the header";
  if (one.validators.hash() !== other.validators.hash()) return "the validators";
  return hasSamePriorities(one.validators, other.validators) ? undefined : "the priorities";
}
