/** What transactions need of a node: the sender's sequence, gas, prices, and the way into a block. */
import { z } from "zod";
import { type Address, toBech32 } from "../../chain/address.js";
import { SDK_CODE } from "../../chain/cosmos/sdk-fault.js";
import { sha256 } from "../../chain/hashes.js";
import { EMPTY_CODE_HASH } from "../../chain/hex.js";
import type { Descriptors } from "../../chain/protobuf/descriptors.js";
import { JsonWriter } from "../../chain/protobuf/json.js";
import type { ProtoMessage } from "../../chain/protobuf/values.js";
import { parseMinimumGasPrices } from "../../chain/units.js";
import { systemClock } from "../../runtime/process/clock.js";
import { CliError } from "../errors.js";
import { askNode, callComet, QueryRefusal, type QueryTarget } from "../queries/node-query.js";
import { waitFor } from "../probe/waiting.js";

const TX_RESPONSE = "cosmos.base.abci.v1beta1.TxResponse";

/** Between two looks for a transaction that is to be mined. */
const LOOK_MS = 300;

/** A node as `causeway tx` uses it. */
export class TxNode {
  constructor(
    readonly types: Descriptors,
    readonly target: QueryTarget,
  ) {}

  /** The chain that the node is on. Throws CLIENT_FAILED. */
  async chainId(): Promise<string> {
    const schema = z.object({ node_info: z.object({ network: z.string() }) });
    return (await callComet("status", {}, schema, this.target)).node_info.network;
  }

  /** Height of the newest block. Throws CLIENT_FAILED. */
  async latestHeight(): Promise<number> {
    const height = z.string().regex(/^[0-9]{1,15}$/);
    const schema = z.object({ sync_info: z.object({ latest_block_height: height }) });
    const { sync_info } = await callComet("status", {}, schema, this.target);
    return Number(sync_info.latest_block_height);
  }

  /** The sequence that the account's next transaction has; 0 for an account that is not there. */
  async sequence(address: Address): Promise<bigint> {
    const path = "/cosmos.auth.v1beta1.Query/AccountInfo";
    try {
      const answer = await this.ask(path, { address: toBech32(address) });
      return answer.submessage("info").bigint("sequence");
    } catch (error) {
      if (error instanceof QueryRefusal && error.message.includes("NotFound")) return 0n;
      throw error;
    }
  }

  /** Whether the account has code. */
  async isContract(address: Address): Promise<boolean> {
    const answer = await this.ask("/cosmos.evm.vm.v1.Query/Account", { address });
    return answer.text("code_hash") !== EMPTY_CODE_HASH;
  }

  /** Gas that a transaction would use in the next block. Throws with the chain's refusal. */
  async gasUsed(bytes: Uint8Array): Promise<bigint> {
    const path = "/cosmos.tx.v1beta1.Service/Simulate";
    const answer = await this.ask(path, { tx_bytes: bytes });
    return answer.submessage("gas_info").bigint("gas_used");
  }

  /** The least price that the node takes, "0.025atoken". */
  async minimumGasPrice(): Promise<string> {
    const answer = await this.ask("/cosmos.base.node.v1beta1.Service/Config", {});
    const price = answer.text("minimum_gas_price");
    parseMinimumGasPrices(price);
    return price;
  }

  /** Any query. */
  ask(path: string, request: ProtoMessage) {
    return askNode(this.types, path, request, this.target);
  }

  /**
   * Asks the pool about the sequence of signed bytes, which are not sent.
   * @returns why it does not take it as the sender's next one; undefined where it does, or says no word of it
   */
  async sequenceRefusal(bytes: Uint8Array): Promise<string | undefined> {
    const tx = Buffer.from(bytes).toString("base64");
    const { code, log } = await callComet("check_tx", { tx }, CHECK, this.target);
    return code === SDK_CODE.wrongSequence ? log : undefined;
  }

  /**
   * Hands signed bytes to the pool.
   * @param mode "sync": answers when the pool has it or refused it; "async": at once
   * @returns `TxResponse` as JSON, with the code of a refusal; what CometBFT's mempool refuses has a
   *   code, too, as the SDK's command line shows it
   */
  async broadcast(bytes: Uint8Array, mode: "sync" | "async"): Promise<BroadcastAnswer> {
    const tx = Buffer.from(bytes).toString("base64");
    const answer = await callComet(`broadcast_tx_${mode}`, { tx }, BROADCAST, this.target).catch(
      (error: unknown) => mempoolRefusal(error, bytes),
    );
    const { code, codespace, log, data, hash } = answer;
    const response = { txhash: hash, code, codespace, raw_log: log, data: data.toUpperCase() };
    const type = this.types.message(TX_RESPONSE);
    return { code, hash, response: JSON.parse(new JsonWriter(this.types).text(type, response)) };
  }

  /**
   * Waits until a block has a transaction.
   * @returns its `TxResponse` as JSON
   * @throws STEP_FAILED at the deadline
   */
  async waitFor(hash: string, timeoutMs: number): Promise<BroadcastAnswer> {
    const path = "/cosmos.tx.v1beta1.Service/GetTx";
    return waitFor(
      async () => {
        try {
          const response = (await this.ask(path, { hash })).submessage("tx_response");
          const type = this.types.message(TX_RESPONSE);
          const text = new JsonWriter(this.types).text(type, response.value);
          return { code: response.number("code"), hash, response: JSON.parse(text) };
        } catch (error) {
          if (error instanceof QueryRefusal && error.message.includes("NotFound")) return undefined;
          throw error;
        }
      },
      {
        what: `a block with the transaction ${hash}`,
        timeoutMs,
        pollMs: LOOK_MS,
        clock: systemClock,
        signal: this.target.signal,
        onStillWaiting: () => undefined,
      },
    );
  }
}

/** Refusals of CometBFT's mempool, which are no results, by the code that they have in the SDK. */
const MEMPOOL_REFUSALS = [
  ["tx already exists in cache", SDK_CODE.alreadyInMempool],
  ["mempool is full", SDK_CODE.mempoolFull],
  ["tx too large", SDK_CODE.transactionTooLarge],
] as const;

/** A refusal of the mempool as a result (SDK `client/broadcast.go`); throws any other error. */
function mempoolRefusal(error: unknown, bytes: Uint8Array): z.infer<typeof BROADCAST> {
  const reason = error instanceof CliError ? error.details["reason"] : undefined;
  if (typeof reason !== "string") throw error;
  const [, code] = MEMPOOL_REFUSALS.find(([words]) => reason.includes(words)) ?? [];
  if (code === undefined) throw error;
  const hash = Buffer.from(sha256(bytes)).toString("hex").toUpperCase();
  return { code, codespace: "sdk", log: reason, data: "", hash };
}

/** What became of a transaction. */
export interface BroadcastAnswer {
  /** 0 where it was taken. */
  readonly code: number;
  readonly hash: string;
  /** `TxResponse` in the SDK's JSON. */
  readonly response: unknown;
}

const CHECK = z.object({ code: z.number(), log: z.string() });

const BROADCAST = z.object({
  code: z.number(),
  codespace: z.string(),
  log: z.string(),
  data: z.string(),
  hash: z.string().regex(/^[0-9A-F]{64}$/),
});
