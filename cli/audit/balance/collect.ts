/** Collects what proves a balance from one node, which is believed in nothing. */
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import type { Address } from "../../../chain/address.js";
import type { Height } from "../../../chain/hex.js";
import type { Genesis } from "../../../node/settings/genesis.js";
import { withoutAccess } from "../../../runtime/config/config-toml.js";
import { CliError } from "../../errors.js";
import { routeOf } from "../../../runtime/http/outgoing/route-url.js";
import { httpRequest } from "../../probe/http-request.js";
import type { AuditNode } from "../audit-node.js";
import { AuditError } from "../errors.js";
import { type BundleContents, type LightBlockJson } from "./bundle.js";
import { collectPath, type HeaderSource } from "./header-path.js";

/** Validators on a page, the most that CometBFT gives. */
const VALIDATORS_PER_PAGE = 100;

/** Pages of the largest set that the chain may have. */
const MAX_PAGES = 100;

/** How often the node is asked whether the block above is there. */
const POLL_MS = 250;

/** Longest wait for the block above the head: networks pause, but not for long. */
const MAX_POLLS = 240;

/** Whom to ask, and for which block. */
export interface CollectSource {
  readonly node: Pick<AuditNode, "headHeight" | "rawHeaders" | "balances" | "proofs">;
  readonly headers: HeaderSource;
  readonly genesis: Genesis;
  /** Undefined: the newest block that validators have signed for by now. */
  readonly height: Height | undefined;
  readonly signal: AbortSignal;
}

/** What is asked for. */
export interface CollectOptions extends CollectSource {
  readonly address: Address;
}

/** A block with the way from the genesis to it. */
export type CollectedBlock = Omit<BundleContents, "address" | "accountProof">;

/** An account with its proof. */
export type AccountProof = Pick<BundleContents, "address" | "accountProof">;

/** Accounts whose proofs are asked for at once. */
const PROOF_BATCH = 200;

/**
 * Everything that a bundle holds; the caller verifies it as a stranger would.
 * @throws BAD_RANGE for a height that is not there; AuditError, CliError and NodeFault as the node
 * answers
 */
export async function collectBundle(options: CollectOptions): Promise<BundleContents> {
  const block = await collectBlock(options);
  for await (const account of collectProofs(options, block.height, [options.address])) {
    return { ...block, ...account };
  }
  throw leftOut();
}

/** The block, with one way from the genesis to it. */
export async function collectBlock(source: CollectSource): Promise<CollectedBlock> {
  const { node, headers, genesis } = source;
  const height = await provableHeight(source);
  const [header] = await node.rawHeaders([height]);
  if (header === undefined) throw leftOut();
  const path = await collectPath(headers, height + 1, genesis);
  return { chainId: genesis.cosmosChainId, height, path, header };
}

/** Proofs of accounts in a block, in their order; no more are held than are asked for at once. */
export async function* collectProofs(
  { node, signal }: Pick<CollectSource, "node" | "signal">,
  height: Height,
  addresses: readonly Address[],
): AsyncGenerator<AccountProof> {
  for (let start = 0; start < addresses.length; start += PROOF_BATCH) {
    const batch = addresses.slice(start, start + PROOF_BATCH);
    const queries = batch.map((address) => ({ address, slots: [] }));
    const proofs = await node.proofs(queries, height);
    signal.throwIfAborted();
    for (const [index, address] of batch.entries()) {
      const proof = proofs[index];
      if (proof === undefined) throw leftOut();
      yield { address, accountProof: proof.account };
    }
  }
}

/**
 * Those that hold coins in a block, in their order, as the node says without a proof: a hundredth of a
 * proof's work for each of the addresses that hold nothing.
 */
export async function withCoins<Account extends { readonly address: Address }>(
  { node, signal }: Pick<CollectSource, "node" | "signal">,
  height: Height,
  accounts: readonly Account[],
): Promise<Account[]> {
  if (accounts.length === 0) return [];
  const balances = await node.balances(
    accounts.map(({ address }) => address),
    height,
  );
  signal.throwIfAborted();
  if (balances.length !== accounts.length) throw leftOut();
  return accounts.filter((_, index) => balances[index] !== 0n);
}

function leftOut(): AuditError {
  return new AuditError("NODE_REFUSED", "The node leaves out what it was asked for.");
}

/** The validators sign a block's state with the next block: the head waits for it. */
async function provableHeight({ node, height, signal }: CollectSource): Promise<Height> {
  const head = await node.headHeight();
  const wanted = height ?? Math.max(0, head - 1);
  if (wanted > head) {
    throw new AuditError("BAD_RANGE", `There is no block ${wanted} yet; the head is ${head}.`);
  }
  for (let poll = 0; (await node.headHeight()) <= wanted; poll++) {
    if (poll === MAX_POLLS) {
      const message = `Block ${wanted + 1}, which signs for ${wanted}, does not come; try again later.`;
      throw new AuditError("BAD_RANGE", message);
    }
    await delay(POLL_MS, undefined, { signal });
  }
  return wanted;
}

const answer = z.object({ result: z.record(z.string(), z.unknown()) });
const pageTotal = z.object({ total: z.string().regex(/^[0-9]{1,5}$/) });

/** Headers from a node's consensus RPC, as it answers them. */
export function headerSource(options: {
  readonly url: string;
  readonly oldestHeight: () => Promise<Height>;
  readonly signal: AbortSignal;
}): HeaderSource {
  const ask = async (route: string): Promise<unknown> => {
    const url = routeOf(options.url, route);
    const { status, body } = await httpRequest(url, {}, { signal: options.signal });
    const parsed = status === 200 ? answer.safeParse(readJson(body)) : undefined;
    if (parsed?.success === true) return parsed.data.result;
    const message = `${withoutAccess(options.url)} does not answer ${route}: has it that height?`;
    throw new CliError("CLIENT_FAILED", message);
  };
  return {
    oldestHeight: options.oldestHeight,
    async lightBlock(height): Promise<LightBlockJson> {
      const commit = await ask(`/commit?height=${height}`);
      const validators: unknown[] = [];
      for (let page = 1; page <= MAX_PAGES; page++) {
        const found = await ask(
          `/validators?height=${height}&page=${page}&per_page=${VALIDATORS_PER_PAGE}`,
        );
        validators.push(found);
        if (Number(pageTotal.parse(found).total) <= page * VALIDATORS_PER_PAGE) break;
      }
      return { commit, validators };
    },
  };
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // Refused by the caller with everything else that is no answer.
  }
}
