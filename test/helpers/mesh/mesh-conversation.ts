/** One call of every endpoint with a real chain behind it: what a client would say and hear. */
import fs from "node:fs";
import path from "node:path";
import { SigningKey, Wallet } from "ethers";
import { until } from "../until.js";

/** Fields of a reply; the tests look into answers of many shapes. */
export type Reply = Readonly<Record<string, unknown>>;

/** A request with its answer. */
export interface Sample {
  readonly server: "online" | "offline";
  readonly path: string;
  readonly request: Reply;
  readonly status: number;
  readonly reply: Reply;
}

/** The network that the servers of the tests answer for. */
export const NETWORK_IDENTIFIER = { blockchain: "token", network: "testnet" };

const RECIPIENT = "0x00000000000000000000000000000000000a11ce";
const CURRENCY = { symbol: "TOKEN", decimals: 18 };

/** Sends a JSON body to a server of the sidecar. */
export async function callMesh(
  url: string,
  at: string,
  request: Reply,
): Promise<{ readonly status: number; readonly reply: Reply }> {
  const response = await fetch(`${url}${at}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(request),
  });
  return { status: response.status, reply: (await response.json()) as Reply };
}

/** Speaks with both servers; every endpoint occurs on both. */
export async function recordConversation(options: {
  readonly onlineUrl: string;
  readonly offlineUrl: string;
  /** Home whose faucet pays. */
  readonly home: string;
}): Promise<Sample[]> {
  const keyText = fs.readFileSync(path.join(options.home, "config", "faucet.key"), "utf8").trim();
  return new Conversation(options, new Wallet(keyText)).run();
}

class Conversation {
  private readonly samples: Sample[] = [];
  private readonly key: SigningKey;

  constructor(
    private readonly urls: { readonly onlineUrl: string; readonly offlineUrl: string },
    private readonly wallet: Wallet,
  ) {
    this.key = new SigningKey(wallet.privateKey);
  }

  async run(): Promise<Sample[]> {
    await this.ask("/network/list", {}, { isBare: true });
    await this.ask("/network/status");
    await this.ask("/network/options");
    await this.ask("/mempool");
    const hash = await this.construct();
    const block = await this.findBlock(hash);
    await this.read(hash, block);
    return this.samples;
  }

  /** Asks both servers the same; the online one's reply goes on. */
  private async ask(
    at: string,
    fields: Reply = {},
    { isBare = false }: { readonly isBare?: boolean } = {},
  ): Promise<Reply> {
    const request = isBare ? fields : { network_identifier: NETWORK_IDENTIFIER, ...fields };
    const { onlineUrl, offlineUrl } = this.urls;
    const offline = await callMesh(offlineUrl, at, request);
    const online = await callMesh(onlineUrl, at, request);
    this.samples.push({ server: "offline", path: at, request, ...offline });
    this.samples.push({ server: "online", path: at, request, ...online });
    return online.reply;
  }

  private async construct(): Promise<string> {
    const { key, wallet } = this;
    const public_key = { hex_bytes: key.compressedPublicKey.slice(2), curve_type: "secp256k1" };
    await this.ask("/construction/derive", { public_key });
    const operations = [side(0, wallet.address, "-7"), side(1, RECIPIENT, "7")];
    const metadata = { memo: "hi", max_fee: "900000000000000" };
    const { options } = await this.ask("/construction/preprocess", { operations, metadata });
    const facts = await this.ask("/construction/metadata", { options, public_keys: [] });
    const { unsigned_transaction, payloads } = await this.ask("/construction/payloads", {
      operations,
      metadata: facts["metadata"],
      public_keys: [public_key],
    });
    await this.ask("/construction/parse", { signed: false, transaction: unsigned_transaction });
    const [payload] = payloads as readonly { readonly hex_bytes: string }[];
    const signature = key.sign(`0x${payload?.hex_bytes ?? ""}`);
    const { signed_transaction } = await this.ask("/construction/combine", {
      unsigned_transaction,
      signatures: [
        {
          signing_payload: payload,
          public_key,
          signature_type: "ecdsa_recovery",
          hex_bytes: `${signature.r.slice(2)}${signature.s.slice(2)}0${signature.yParity}`,
        },
      ],
    });
    await this.ask("/construction/parse", { signed: true, transaction: signed_transaction });
    await this.ask("/construction/hash", { signed_transaction });
    const submitted = await this.ask("/construction/submit", { signed_transaction });
    return (submitted["transaction_identifier"] as { readonly hash: string }).hash;
  }

  /** The block that the transaction was mined in. */
  private async findBlock(hash: string): Promise<Reply> {
    const { onlineUrl } = this.urls;
    let index = 1;
    let found: Reply | undefined;
    await until(
      async () => {
        const request = { network_identifier: NETWORK_IDENTIFIER, block_identifier: { index } };
        const { status, reply } = await callMesh(onlineUrl, "/block", request);
        if (status !== 200) return false;
        index += 1;
        if (JSON.stringify(reply).includes(`{"hash":"${hash}"}`)) {
          found = (reply["block"] as Reply)["block_identifier"] as Reply;
        }
        return found !== undefined;
      },
      { timeoutMs: 30_000, what: "the transaction is mined" },
    );
    return found ?? {};
  }

  private async read(hash: string, block_identifier: Reply): Promise<void> {
    const transaction_identifier = { hash };
    const { index, hash: blockHash } = block_identifier;
    for (const identifier of [{ index: 0 }, { index }, { hash: blockHash }, block_identifier, {}]) {
      await this.ask("/block", { block_identifier: identifier });
    }
    await this.ask("/block/transaction", { block_identifier, transaction_identifier });
    await this.ask("/mempool/transaction", { transaction_identifier });
    const account_identifier = { address: this.wallet.address };
    await this.ask("/account/balance", { account_identifier });
    const currencies = [CURRENCY];
    await this.ask("/account/balance", { account_identifier, block_identifier, currencies });
    await this.ask("/account/coins", { account_identifier, include_mempool: false });
    const parameters = { to: RECIPIENT, data: "0x", block_identifier };
    await this.ask("/call", { method: "eth_call", parameters });
    const getReceipt = { method: "eth_getTransactionReceipt", parameters: { tx_hash: hash } };
    await this.ask("/call", getReceipt);
    await this.ask("/events/blocks", { offset: 0, limit: 5 });
    await this.ask("/events/blocks", { limit: 5 });
    await this.ask("/search/transactions", { transaction_identifier });
    await this.ask("/search/transactions", {
      operator: "and",
      account_identifier,
      currency: CURRENCY,
      type: "CALL",
      status: "SUCCESS",
      success: true,
      max_block: index,
      offset: 0,
      limit: 10,
    });
  }
}

function side(index: number, address: string, value: string): Reply {
  return {
    operation_identifier: { index },
    ...(index === 0 ? {} : { related_operations: [{ index: 0 }] }),
    type: "CALL",
    status: "",
    account: { address },
    amount: { value, currency: CURRENCY },
  };
}
