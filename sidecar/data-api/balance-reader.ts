/**
 * Balances at fixed heights. Native ones come from the node's state, never from operations, so
 * that they can contradict them. A token's is what its operations add up to, held against
 * `balanceOf` as it is read: the two differ where a token was not checked since it changed.
 */
import { type Address, ZERO_ADDRESS } from "../../chain/address.js";
import type { AccountState, AccountStateQuery } from "../../rpc-client/account-states.js";
import type { ClaimAnswer, ClaimQuery, NodeClaim } from "../../rpc-client/indexing/claims.js";
import { areParamsInvalid, isHeaderMissing, type RpcError } from "../../rpc-client/errors.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type {
  TokenBalanceAnswer,
  TokenBalanceQuery,
} from "../../rpc-client/tokens/token-balances.js";
import type { LogFields, Logger } from "../../runtime/process/logger.js";
import type { Metrics } from "../../runtime/process/metrics.js";
import type { IndexReader } from "../index/index-reader.js";
import { missingBlockFault } from "../index/missing-block.js";
import { SidecarError } from "../rosetta/errors.js";
import type { BlockIdentifier } from "../rosetta/identifiers.js";
import type { SubAccount } from "../rosetta/sub-accounts.js";
import type { Token } from "../rosetta/token-registry.js";
import { ReadBatcher } from "./read-batcher.js";

/** What a reader works with. */
export interface BalanceReaderOptions {
  readonly client: Pick<
    EvmClient,
    "accountStates" | "tokenBalanceAnswers" | "claims" | "getBlockHeader"
  >;
  readonly index: Pick<IndexReader, "tokenBalance" | "quarantineOf">;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The process's signal: reads are shared by requests. */
  readonly signal: AbortSignal;
}

/**
 * Reads of balances after blocks of the index. The node is asked by the block's hash: one of another
 * chain, or one that is behind, must not answer with the state of another block.
 */
export interface BalanceReader {
  native(account: Address, block: BlockIdentifier): Promise<Extract<AccountState, { ok: true }>>;
  /** In the token's units; of a quarantined token the balance at which it was frozen. */
  token(token: Token, account: Address, block: BlockIdentifier): Promise<bigint>;
  /** A claim; all delegations of an account, of `staked`. Throws SUB_ACCOUNT_NOT_SUPPORTED. */
  claim(account: Address, sub: SubAccount, block: BlockIdentifier): Promise<NodeClaim>;
}

/** Claims kept: one with all delegations or entries of an account has up to 100 KB. */
const MAX_KEPT_CLAIMS = 256;

/** Answers kept, some 200 bytes each: what is final may be answered again. */
const MAX_KEPT = 65_536;

/** A reader over a node and an index. */
export function createBalanceReader(options: BalanceReaderOptions): BalanceReader {
  const { client, index, log, signal } = options;
  const differences = options.metrics.counter(
    "causeway_sidecar_token_balance_differences_total",
    "Balances of tokens that were not what their operations add up to when they were asked for.",
    ["contract"],
  );
  const states = new ReadBatcher<AccountStateQuery, AccountState>({
    keyOf: ({ address, at }) => `${at}/${address}`,
    read: (queries) => client.accountStates(queries, { signal }),
    // A node that is behind refuses for now.
    isFinal: ({ ok }) => ok,
    maxKept: MAX_KEPT,
  });
  const tokens = new ReadBatcher<TokenBalanceQuery, TokenBalanceAnswer>({
    keyOf: ({ token, account, at }) => `${at}/${account}/${token}`,
    read: (queries) => client.tokenBalanceAnswers(queries, { signal }),
    isFinal: ({ ok }) => ok,
    maxKept: MAX_KEPT,
  });
  const claims = new ReadBatcher<ClaimQuery, ClaimAnswer>({
    keyOf: ({ kind, account, validator, at }) => `${at}/${kind}/${account}/${validator ?? ""}`,
    read: (queries) => client.claims(queries, { signal }),
    isFinal: ({ ok }) => ok,
    maxKept: MAX_KEPT_CLAIMS,
  });
  const told = new Set<Address>();
  const tellDifference = (contract: Address, fields: LogFields) => {
    differences.inc({ contract });
    if (told.has(contract)) return;
    told.add(contract);
    log.warn({ contract, ...fields }, "a token's balance is not what its operations add up to");
  };
  /** What a refusal of the node means for a read under a block of the index. */
  const refusalOf = (error: unknown, block: BlockIdentifier) =>
    isHeaderMissing(error) ? missingBlockFault(client, block, { signal }) : error;
  return {
    async native(address, block) {
      const state = await states.get({ address, at: block.hash });
      if (!state.ok) throw await refusalOf(state.error, block);
      return state;
    },
    async claim(account, { kind, validator }, block) {
      const answer = await claims.get({ kind, account, validator, at: block.hash });
      if (!answer.ok) throw await refusalOf(claimRefusal(answer.error), block);
      if (answer.claim !== undefined) return answer.claim;
      throw new SidecarError("SUB_ACCOUNT_NOT_SUPPORTED", { reason: "the chain has no stake" });
    },
    async token({ contractAddress: contract }, account, block) {
      const { index: at, hash } = block;
      const sum = await index.tokenBalance({ contract, account }, at);
      const quarantine = index.quarantineOf(contract);
      const isFrozen = quarantine !== undefined && quarantine.height <= at;
      // Nobody owns the zero address: coins sent there are burned by their operation.
      if (isFrozen || account === ZERO_ADDRESS) return sum;
      const answer = await tokens.get({ token: contract, account, at: hash });
      if (!answer.ok) throw await refusalOf(answer.error, block);
      const { units } = answer;
      if ((units ?? 0n) !== sum) {
        tellDifference(contract, { account, height: at, sum: String(sum), is: String(units) });
      }
      return sum;
    },
  };
}

/** Pools are sub-accounts of the chain's own accounts alone. */
function claimRefusal(error: RpcError): RpcError | SidecarError {
  if (areParamsInvalid(error)) {
    return new SidecarError("SUB_ACCOUNT_NOT_SUPPORTED", { reason: error.nodeMessage }, error);
  }
  return error;
}
