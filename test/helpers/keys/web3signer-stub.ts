/** A Web3Signer that tests can make lie: HTTP JSON-RPC, one key, `eth_signTransaction`; and `eth_sign`. */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { getBytes, Signature, Transaction, type TransactionLike, Wallet } from "ethers";

/** What it does wrong; undefined for nothing. */
export type Lie =
  | "wrong-chain"
  | "high-s"
  | "other-key"
  | "other-value"
  | "other-nonce"
  | "other-recipient"
  | "more-gas"
  | "dearer"
  | "cheaper"
  | "access-list"
  | "fee-market"
  | "calldata"
  | "garbage"
  | "not-hex"
  | "wrong-id"
  | "silent-after-signing"
  | "too-many-requests"
  | "refusal";

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** A running stub. */
export class Web3SignerStub {
  lie: Lie | undefined;
  /** Methods that were asked for. */
  readonly methods: string[] = [];
  /** How many transactions it signed, whatever it answered. */
  signed = 0;
  readonly #server: Server;
  readonly #wallet: Wallet;
  readonly #chainId: bigint;

  private constructor(privateKey: string, chainId: bigint) {
    this.#wallet = new Wallet(privateKey);
    this.#chainId = chainId;
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => void this.#answer(Buffer.concat(chunks).toString(), response));
    });
  }

  static async start(privateKey: string, chainId: bigint): Promise<Web3SignerStub> {
    const stub = new Web3SignerStub(privateKey, chainId);
    await new Promise<void>((resolve) => stub.#server.listen(0, "127.0.0.1", resolve));
    return stub;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(body: string, response: ServerResponse): Promise<void> {
    const { id, method, params } = JSON.parse(body);
    this.methods.push(method);
    if (this.lie === "too-many-requests") {
      response.statusCode = 429;
      return void response.end("slow down");
    }
    if (this.lie === "garbage") return void response.end("<html>");
    if (this.lie === "refusal") {
      const error = { code: -32_000, message: "no signer for this address" };
      return void response.end(JSON.stringify({ jsonrpc: "2.0", id, error }));
    }
    const result =
      method === "eth_sign"
        ? await this.#keyOf().signMessage(getBytes(params[1]))
        : await this.#sign(params[0]);
    this.signed += 1;
    if (this.lie === "silent-after-signing") return;
    const given = this.lie === "not-hex" ? { signed: true } : result;
    const answered = this.lie === "wrong-id" ? id + 1 : id;
    response.end(JSON.stringify({ jsonrpc: "2.0", id: answered, result: given }));
  }

  #keyOf(): Wallet {
    return this.lie === "other-key" ? new Wallet(`0x${"4d".repeat(32)}`) : this.#wallet;
  }

  async #sign(asked: Record<string, string>): Promise<string> {
    const { lie } = this;
    const raw = await this.#keyOf().signTransaction({
      chainId: lie === "wrong-chain" ? this.#chainId + 1n : this.#chainId,
      nonce: Number(asked["nonce"]) + (lie === "other-nonce" ? 1 : 0),
      to: lie === "other-recipient" ? `0x${"77".repeat(20)}` : asked["to"],
      value: BigInt(asked["value"] ?? 0) + (lie === "other-value" ? 1n : 0n),
      gasLimit: BigInt(asked["gas"] ?? 0) + (lie === "more-gas" ? 1n : 0n),
      ...feesOf(BigInt(asked["gasPrice"] ?? 0), lie),
      data: lie === "calldata" ? "0x01" : asked["data"],
    });
    return lie === "high-s" ? withHighS(raw, this.#chainId) : raw;
  }
}

/** The transaction's type, and what it pays for gas: of the other types as much as was asked for. */
function feesOf(price: bigint, lie: Lie | undefined): TransactionLike {
  if (lie === "access-list") return { type: 1, gasPrice: price, accessList: [] };
  if (lie === "fee-market") return { type: 2, maxFeePerGas: price, maxPriorityFeePerGas: price };
  if (lie === "dearer") return { type: 0, gasPrice: price + 1n };
  if (lie === "cheaper") return { type: 0, gasPrice: price - 1n };
  return { type: 0, gasPrice: price };
}

/** The same signature with `s` in the upper half: valid for the curve, not for Ethereum. */
function withHighS(raw: string, chainId: bigint): string {
  const tx = Transaction.from(raw);
  const { r, s, yParity } = Signature.from(tx.signature ?? undefined);
  const word = (value: bigint) => value.toString(16).padStart(64, "0");
  const v = (35n + 2n * chainId + BigInt(1 - yParity)).toString(16);
  const low = BigInt(s).toString(16).padStart(64, "0");
  const old = (35n + 2n * chainId + BigInt(yParity)).toString(16);
  const tail = (byV: string, byS: string) => `82${byV.padStart(4, "0")}a0${r.slice(2)}a0${byS}`;
  return raw.replace(tail(old, low), tail(v, word(ORDER - BigInt(s))));
}
