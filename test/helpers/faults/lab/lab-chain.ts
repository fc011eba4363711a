/**
 * The chain that many scenarios share: one node of ours with blocks of 200 ms and its Data API, each
 * a process, and a faucet that serves one after the other.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Transaction, Wallet } from "ethers";
import { DEFAULT_PORTS } from "../../../../chain/networks.js";
import { runCauseway } from "../../kit.js";
import { until } from "../../until.js";
import { FaultChain } from "../chain.js";
import { LabProcess } from "./lab-process.js";

const CHAIN_ID = 6940;
const GAS_PRICE_ATOKEN = 100_000_000n;
const TRANSFER_GAS = 21_000;

/** A running chain. */
export class LabChain {
  readonly chain = new FaultChain(() => this.nodeUrl);
  readonly home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-lab-"));
  #processes: { readonly node: LabProcess; readonly sidecar: LabProcess } | undefined;
  #funding: Promise<void> = Promise.resolve();
  #nextNonce: number | undefined;

  private constructor(private readonly portOffset: number) {}

  /** Makes a chain and starts it; ready when the Data API has its first block. */
  static async open(portOffset: number): Promise<LabChain> {
    const lab = new LabChain(portOffset);
    fs.chmodSync(lab.home, 0o755);
    const init = ["init", "--block-interval-ms", "200", "--port-offset", String(portOffset)];
    const { code, stderr } = await runCauseway(lab, init);
    if (code !== 0) throw new Error(`no home for the chain: ${stderr}`);
    await lab.node.start();
    await lab.sidecar.start();
    await until(async () => (await lab.chain.height()) > 0, { timeoutMs: 60_000, what: "a block" });
    return lab;
  }

  get nodeUrl(): string {
    return `http://127.0.0.1:${DEFAULT_PORTS.jsonRpc + this.portOffset}`;
  }

  get dataUrl(): string {
    return `http://127.0.0.1:${DEFAULT_PORTS.sidecarOnline + this.portOffset}`;
  }

  get webSocketUrl(): string {
    return `ws://127.0.0.1:${DEFAULT_PORTS.webSocket + this.portOffset}`;
  }

  get node(): LabProcess {
    return this.#all.node;
  }

  get sidecar(): LabProcess {
    return this.#all.sidecar;
  }

  get #all() {
    const args = ["--home", this.home, "--port-offset", String(this.portOffset)];
    const make = (name: string, script: string) => new LabProcess({ name, script, args, env: {} });
    this.#processes ??= {
      node: make("node", "node/main.js"),
      sidecar: make("sidecar", "sidecar/main-online.js"),
    };
    return this.#processes;
  }

  /** Gives each address so much; resolves when the payments are mined. */
  fund(addresses: readonly string[], amountAtoken: bigint): Promise<void> {
    const funded = this.#funding.then(() => this.#fundNow(addresses, amountAtoken));
    this.#funding = funded.catch(() => undefined);
    return funded;
  }

  async #fundNow(addresses: readonly string[], value: bigint): Promise<void> {
    const faucet = new Wallet(
      fs.readFileSync(path.join(this.home, "config", "faucet.key"), "utf8").trim(),
    );
    this.#nextNonce ??= Number(
      await this.chain.call("eth_getTransactionCount", faucet.address, "latest"),
    );
    const first = this.#nextNonce;
    const signed = addresses.map((to, index) => {
      const nonce = first + index;
      const fields = { gasPrice: GAS_PRICE_ATOKEN, gasLimit: TRANSFER_GAS, chainId: CHAIN_ID };
      const transaction = Transaction.from({ type: 0, nonce, to, value, ...fields });
      transaction.signature = faucet.signingKey.sign(transaction.unsignedHash);
      return { raw: transaction.serialized, hash: String(transaction.hash) };
    });
    const isMined = async (): Promise<boolean> => {
      await this.chain.batch(signed.map(({ raw }) => ["eth_sendRawTransaction", [raw]]));
      const receipts = await this.chain.results(
        signed.map(({ hash }) => ["eth_getTransactionReceipt", [hash]]),
      );
      return receipts.every((receipt) => receipt !== null);
    };
    await until(isMined, { timeoutMs: 60_000, what: "the faucet's payments are mined" });
    this.#nextNonce = first + addresses.length;
  }

  async close(): Promise<void> {
    await this.sidecar.stop();
    await this.node.stop();
    fs.rmSync(this.home, { recursive: true, force: true });
  }
}
