/**
 * What pages ask of the node's consensus RPC: who decided a block, who the validators are, the Cosmos
 * side's hashes, the supply.
 */
import { type Address, bytesToAddress } from "../../chain/address.js";
import { ProtoReader, ProtoWriter } from "../../chain/protobuf/wire.js";
import { bytesToHash32, type Hash32, hexToBytes } from "../../chain/hex.js";
import { BASE_DENOM, type Atoken } from "../../chain/units.js";
import {
  type AnswerObject,
  readCount,
  readDecimal,
  readList,
  readObject,
  readString,
} from "../../rpc-client/answer-fields.js";
import { badAnswer, RpcError } from "../../rpc-client/errors.js";
import {
  type JsonRpcClient,
  resultOf,
  type RpcCall,
  type RpcOptions,
  type RpcOutcome,
} from "../../rpc-client/json-rpc.js";

/** One validator's part of a commit. */
export interface CommitVote {
  /** Undefined for one that did not vote in time. */
  readonly validator: Address | undefined;
  readonly vote: "commit" | "nil" | "absent";
}

/** The precommits that decided a block. */
export interface CommitView {
  readonly height: number;
  readonly round: number;
  readonly consensusHash: Hash32;
  readonly proposer: Address;
  readonly votes: readonly CommitVote[];
  /** False for the newest block, whose commit may still gain votes. */
  readonly isCanonical: boolean;
}

/** A validator of a height. */
export interface ValidatorView {
  readonly address: Address;
  readonly publicKey: string;
  readonly power: bigint;
}

/** A transaction as the Cosmos side has it. */
export interface CosmosTransaction {
  readonly height: number;
  readonly index: number;
  readonly code: bigint;
  readonly log: string;
  readonly gasUsed: bigint;
  readonly events: readonly CosmosEvent[];
}

/** One event of a transaction or block. */
export interface CosmosEvent {
  readonly type: string;
  readonly attributes: readonly { readonly key: string; readonly value: string }[];
}

/** Where the coins are after a block, atoken. */
export interface SupplyParts {
  /** At the burn address: sent there, and lost. */
  readonly burnedAtoken: Atoken;
  /** Of accounts of genesis, not yet free by their schedules. */
  readonly lockedAtoken: Atoken;
  /** All others. */
  readonly circulatingAtoken: Atoken;
}

/** Validators on a page, the most that CometBFT gives. */
const VALIDATORS_PER_PAGE = 100;

/** Headers of one answer, the most that CometBFT gives. */
const HEADERS = 20;

/** Pages of validators that are read: sets are smaller. */
const MAX_PAGES = 5;

/** Events of one transaction that are shown. */
const MAX_EVENTS = 200;

/** CometBFT's error for what is not there or refused; the reason is in its data. */
const INTERNAL_ERROR = -32603;

/** Reads of one node. Throws NodeFault; what is not there is undefined. */
export class ConsensusSource {
  constructor(private readonly rpc: JsonRpcClient) {}

  /** Commit and header, as they are answered. */
  async rawCommit(height: number, options: RpcOptions): Promise<AnswerObject | undefined> {
    return this.find("commit", [String(height)], options);
  }

  /** Pages of validators, as they are answered. */
  async rawValidators(height: number, options: RpcOptions): Promise<AnswerObject[]> {
    const pages: AnswerObject[] = [];
    for (let page = 1; page <= MAX_PAGES; page++) {
      const found = await this.find(
        "validators",
        [String(height), page, VALIDATORS_PER_PAGE],
        options,
      );
      if (found === undefined) break;
      pages.push(found);
      if (Number(readString(found["total"], "total")) <= page * VALIDATORS_PER_PAGE) break;
    }
    return pages;
  }

  /** Headers from `from` to `to`, newest first, at most twenty, as they are answered. */
  async rawHeaders(
    from: number,
    to: number,
    options: RpcOptions,
  ): Promise<AnswerObject | undefined> {
    return this.find("blockchain", [String(from), String(to)], options);
  }

  /** Who decided a block. */
  async commit(height: number, options: RpcOptions): Promise<CommitView | undefined> {
    const answer = await this.rawCommit(height, options);
    return answer === undefined ? undefined : parseCommit(answer);
  }

  /** Commits in the order of the heights, as far as they are there. */
  async commits(heights: readonly number[], options: RpcOptions): Promise<CommitView[]> {
    const calls = heights.map((height) => ({ method: "commit", params: [String(height)] }));
    const outcomes = await this.rpc.batch(calls, options);
    return outcomes.flatMap((outcome) => {
      const found = foundOf(outcome);
      return found === undefined ? [] : [parseCommit(found)];
    });
  }

  /** The validators of a height. */
  async validators(height: number, options: RpcOptions): Promise<ValidatorView[]> {
    const pages = await this.rawValidators(height, options);
    return pages.flatMap((page) =>
      readList(page["validators"], "validators").map((value) => {
        const validator = readObject(value, "validator");
        const key = readObject(validator["pub_key"], "pub_key");
        return {
          address: addressOf(validator["address"]),
          publicKey: readString(key["value"], "pub_key.value"),
          power: readDecimal(validator["voting_power"], "voting_power"),
        };
      }),
    );
  }

  /** A transaction by the SHA-256 of its bytes. */
  async transaction(hash: Hash32, options: RpcOptions): Promise<CosmosTransaction | undefined> {
    const bytes = Buffer.from(hexToBytes(hash)).toString("base64");
    const answer = await this.find("tx", [bytes, false], options);
    return answer === undefined ? undefined : parseCosmosTransaction(answer);
  }

  /** Height of a block by its consensus hash. */
  async heightOfHash(hash: Hash32, options: RpcOptions): Promise<number | undefined> {
    const answer = await this.find("header_by_hash", [hash.slice(2)], options);
    const header = answer?.["header"];
    if (header === undefined || header === null) return undefined;
    return Number(readDecimal(readObject(header, "header")["height"], "height"));
  }

  /**
   * Transactions of blocks, of both kinds, by height: as far as the node tells of blocks `from` to
   * `to`, both included, and of no more than fit into a few answers.
   */
  async transactionCounts(
    { from, to }: { readonly from: number; readonly to: number },
    options: RpcOptions,
  ): Promise<ReadonlyMap<number, number>> {
    const counts = new Map<number, number>();
    for (let top = to, answers = 0; top >= from && answers < MAX_PAGES; answers++) {
      const least = Math.max(from, top - HEADERS + 1);
      const answer = await this.rawHeaders(least, top, options);
      for (const value of readList(answer?.["block_metas"] ?? [], "block_metas")) {
        const meta = readObject(value, "block_meta");
        const header = readObject(meta["header"], "header");
        const height = Number(readDecimal(header["height"], "height"));
        counts.set(height, Number(readDecimal(meta["num_txs"], "num_txs")));
      }
      top = least - 1;
    }
    return counts;
  }

  /** Total supply after each height; undefined where the node no longer has it. */
  async supplies(heights: readonly number[], options: RpcOptions): Promise<(bigint | undefined)[]> {
    const data = new ProtoWriter().bytes(1, BASE_DENOM).finish().toString("hex");
    const calls = heights.map((height) => ({
      method: "abci_query",
      params: ["/cosmos.bank.v1beta1.Query/SupplyOf", data, String(height), false],
    }));
    return (await this.rpc.batch(calls, options)).map(parseSupply);
  }

  /** Parts of the supply after each height; undefined where the node no longer has them. */
  async supplyParts(
    heights: readonly number[],
    options: RpcOptions,
  ): Promise<(SupplyParts | undefined)[]> {
    const calls = heights.map((height) => ({
      method: "abci_query",
      params: ["/causeway.supply.v1.Query/Supply", "", String(height), false],
    }));
    return (await this.rpc.batch(calls, options)).map(parseSupplyParts);
  }

  /** Over a batch, because CometBFT answers single refusals with a status of HTTP. */
  private async find(
    method: string,
    params: RpcCall["params"],
    options: RpcOptions,
  ): Promise<AnswerObject | undefined> {
    const [outcome] = await this.rpc.batch([{ method, params }], options);
    return foundOf(outcome);
  }
}

function foundOf(outcome: RpcOutcome | undefined): AnswerObject | undefined {
  if (outcome?.ok === false && isRefusal(outcome.error)) return undefined;
  return readObject(resultOf(outcome), "result");
}

function isRefusal(error: RpcError): boolean {
  return error.rpc.rpcCode === INTERNAL_ERROR;
}

function parseCommit(answer: AnswerObject): CommitView {
  const signed = readObject(answer["signed_header"], "signed_header");
  const header = readObject(signed["header"], "header");
  const commit = readObject(signed["commit"], "commit");
  return {
    height: Number(readDecimal(header["height"], "height")),
    round: readCount(commit["round"], "round"),
    consensusHash: hashOf(readObject(commit["block_id"], "block_id")["hash"]),
    proposer: addressOf(header["proposer_address"]),
    votes: readList(commit["signatures"], "signatures").map(parseVote),
    isCanonical: answer["canonical"] === true,
  };
}

/** CometBFT's BlockIDFlag: 1 absent, 2 for the block, 3 for nil. */
function parseVote(value: unknown): CommitVote {
  const entry = readObject(value, "signature");
  const flag = readCount(entry["block_id_flag"], "block_id_flag");
  if (flag === 1) return { validator: undefined, vote: "absent" };
  const validator = addressOf(entry["validator_address"]);
  return { validator, vote: flag === 2 ? "commit" : "nil" };
}

function parseCosmosTransaction(answer: AnswerObject): CosmosTransaction {
  const result = readObject(answer["tx_result"], "tx_result");
  return {
    height: Number(readDecimal(answer["height"], "height")),
    index: readCount(answer["index"], "index"),
    code: BigInt(readCount(result["code"], "code")),
    log: typeof result["log"] === "string" ? result["log"] : "",
    gasUsed: readDecimal(result["gas_used"], "gas_used"),
    events: readList(result["events"] ?? [], "events")
      .slice(0, MAX_EVENTS)
      .map(parseEvent),
  };
}

function parseEvent(value: unknown): CosmosEvent {
  const event = readObject(value, "event");
  return {
    type: readString(event["type"], "type"),
    attributes: readList(event["attributes"] ?? [], "attributes").map((item) => {
      const attribute = readObject(item, "attribute");
      const text = attribute["value"];
      const key = readString(attribute["key"], "key");
      return { key, value: typeof text === "string" ? text : "" };
    }),
  };
}

/** `QuerySupplyOfResponse{amount: Coin{denom, amount}}`. */
function parseSupply(outcome: RpcOutcome): bigint | undefined {
  return queried(outcome, (value) => {
    const coin = new ProtoReader(new ProtoReader(value, [1]).bytes(1), [1, 2]);
    return readDecimal(coin.text(2), "supply");
  });
}

/** `QuerySupplyResponse{height, total, burned, locked, circulating}` of `causeway.supply.v1`. */
function parseSupplyParts(outcome: RpcOutcome): SupplyParts | undefined {
  return queried(outcome, (value) => {
    const parts = new ProtoReader(value, [1, 2, 3, 4, 5]);
    return {
      burnedAtoken: readDecimal(parts.text(3), "burned"),
      lockedAtoken: readDecimal(parts.text(4), "locked"),
      circulatingAtoken: readDecimal(parts.text(5), "circulating"),
    };
  });
}

/** What a query answered; undefined for a refusal. */
function queried<T>(outcome: RpcOutcome, read: (value: Buffer) => T): T | undefined {
  const answer = foundOf(outcome);
  if (answer === undefined) return undefined;
  const response = readObject(answer["response"], "response");
  const value = response["value"];
  if (response["code"] !== 0 || typeof value !== "string") return undefined;
  try {
    return read(Buffer.from(value, "base64"));
  } catch (cause) {
    throw badAnswer("the supply is malformed", cause);
  }
}

function addressOf(value: unknown): Address {
  if (typeof value !== "string" || !/^[0-9A-Fa-f]{40}$/.test(value)) throw badAnswer("an address");
  return bytesToAddress(Buffer.from(value, "hex"));
}

function hashOf(value: unknown): Hash32 {
  if (typeof value !== "string" || !/^[0-9A-Fa-f]{64}$/.test(value)) throw badAnswer("a hash");
  return bytesToHash32(Buffer.from(value, "hex"));
}
