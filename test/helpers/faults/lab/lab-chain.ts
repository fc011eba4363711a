/**
 * The chain that many scenarios share: one node of ours with blocks of 200 ms and its Data API, each
 * a process, and a faucet that serves one after the other.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { getAddress, Transaction, Wallet } from "ethers";
import { DEFAULT_PORTS } from "../../../../chain/networks.js";
import { runCauseway } from "../../kit.js";
import { compileFixture } from "../../contracts/solidity.js";
import { until } from "../../until.js";
import { FaultChain } from "../chain.js";
import { LAB_TOKEN_CALLS } from "../movements.js";
import { LAB_TOKEN } from "../promises.js";
import { LabProcess } from "./lab-process.js";

const CHAIN_ID = 6940;
const GAS_PRICE_ATOKEN = 100_000_000n;
const TRANSFER_GAS = 21_000;

const CALL_GAS = 200_000;
const DEPLOYMENT_GAS = 3_000_000;

/** How a chain is made. */
export interface LabChainOptions {
  readonly portOffset: number;
  /** True gives it a token that mints for everybody, and that its Data API serves. */
  readonly hasToken?: boolean;
}

/** A transaction of the faucet. */
interface FaucetMessage {
  readonly to?: string;
  readonly value?: bigint;
  readonly data?: string;
  readonly gasLimit: number;
}

/** A running chain. */
export class LabChain {
  readonly chain = new FaultChain(() => this.nodeUrl);
  readonly home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-lab-"));
  #processes: { readonly node: LabProcess; readonly sidecar: LabProcess } | undefined;
  #funding: Promise<void> = Promise.resolve();
  #nextNonce: number | undefined;
  #tokenFile: string | undefined;

  private constructor(private readonly portOffset: number) {}

  /** Makes a chain and starts it; ready when the Data API has its first block. */
  static async open({ portOffset, hasToken = false }: LabChainOptions): Promise<LabChain> {
    const lab = new LabChain(portOffset);
    fs.chmodSync(lab.home, 0o755);
    const init = ["init", "--block-interval-ms", "200", "--port-offset", String(portOffset)];
    const { code, stderr } = await runCauseway(lab, init);
    if (code !== 0) throw new Error(`no home for the chain: ${stderr}`);
    await lab.node.start();
    if (hasToken) await lab.#deployToken();
    await lab.sidecar.start();
    await until(async () => (await lab.chain.height()) > 0, { timeoutMs: 60_000, what: "a block" });
    return lab;
  }

  /** The list of its token, as homes have it; undefined without one. */
  get tokenFile(): string | undefined {
    return this.#tokenFile;
  }

  /** Address of its token. */
  get token(): string {
    const [entry] = JSON.parse(this.#tokenFile ?? "[]") as { contractAddress: string }[];
    if (entry === undefined) throw new Error("this chain was made without a token");
    return entry.contractAddress.toLowerCase();
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

  /** Ends of node and Data API that nobody asked for. */
  get ownEnds(): readonly string[] {
    return [...this.node.ownEnds, ...this.sidecar.ownEnds];
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

  /** Keeps what node and Data API have on disk, as a backup of the whole home. */
  async keepCopy(): Promise<void> {
    await this.#whileStopped("SIGTERM", () => copyFolder(this.#data, this.#copy));
  }

  /** Comes back as it was when the copy was kept, and goes on from there with other blocks. */
  async comeBackOlder(): Promise<void> {
    await this.#whileStopped("SIGKILL", () => copyFolder(this.#copy, this.#data));
  }

  async #whileStopped(ending: NodeJS.Signals, work: () => void): Promise<void> {
    await this.sidecar.stop(ending);
    await this.node.stop(ending);
    work();
    await this.node.start();
    await this.sidecar.start();
  }

  get #data(): string {
    return path.join(this.home, "data");
  }

  get #copy(): string {
    return path.join(this.home, "older");
  }

  /** Gives each address so much; resolves when the payments are mined. */
  async fund(addresses: readonly string[], amountAtoken: bigint): Promise<void> {
    await this.#mine(addresses.map((to) => ({ to, value: amountAtoken, gasLimit: TRANSFER_GAS })));
  }

  /** Gives an address units of its token; resolves when they are mined. */
  async mint(address: string, amountUnits: bigint): Promise<void> {
    const data = LAB_TOKEN_CALLS.encodeFunctionData("mint", [address, amountUnits]);
    await this.#mine([{ to: this.token, data, gasLimit: CALL_GAS }]);
  }

  async #deployToken(): Promise<void> {
    const data = compileFixture("DepositTokens.sol")["PlainToken"]?.bytecode;
    if (data === undefined) throw new Error("the token does not compile");
    const [receipt] = await this.#mine([{ data, gasLimit: DEPLOYMENT_GAS }]);
    const contractAddress = getAddress(String(receipt?.["contractAddress"]));
    this.#tokenFile = JSON.stringify([{ contractAddress, symbol: LAB_TOKEN, decimals: 6 }]);
    const file = path.join(this.home, "config", "tokens.json");
    fs.writeFileSync(file, this.#tokenFile, { mode: 0o600 });
  }

  /** One after the other; resolves to the receipts. */
  #mine(messages: readonly FaucetMessage[]): Promise<Record<string, unknown>[]> {
    const mined = this.#funding.then(() => this.#mineNow(messages));
    this.#funding = mined.then(
      () => undefined,
      () => undefined,
    );
    return mined;
  }

  async #mineNow(messages: readonly FaucetMessage[]): Promise<Record<string, unknown>[]> {
    const faucet = new Wallet(
      fs.readFileSync(path.join(this.home, "config", "faucet.key"), "utf8").trim(),
    );
    this.#nextNonce ??= Number(
      await this.chain.call("eth_getTransactionCount", faucet.address, "latest"),
    );
    const first = this.#nextNonce;
    const signed = messages.map((message, index) => {
      const fields = { nonce: first + index, gasPrice: GAS_PRICE_ATOKEN, chainId: CHAIN_ID };
      const transaction = Transaction.from({ type: 0, ...fields, ...message });
      transaction.signature = faucet.signingKey.sign(transaction.unsignedHash);
      return { raw: transaction.serialized, hash: String(transaction.hash) };
    });
    let receipts: unknown[] = [];
    const isMined = async (): Promise<boolean> => {
      await this.chain.batch(signed.map(({ raw }) => ["eth_sendRawTransaction", [raw]]));
      receipts = await this.chain.results(
        signed.map(({ hash }) => ["eth_getTransactionReceipt", [hash]]),
      );
      return receipts.every((receipt) => receipt !== null);
    };
    await until(isMined, { timeoutMs: 60_000, what: "the faucet's payments are mined" });
    this.#nextNonce = first + messages.length;
    return receipts as Record<string, unknown>[];
  }

  async close(): Promise<void> {
    await this.sidecar.stop();
    await this.node.stop();
    fs.rmSync(this.home, { recursive: true, force: true });
  }
}

function copyFolder(from: string, to: string): void {
  fs.rmSync(to, { recursive: true, force: true });
  fs.cpSync(from, to, { recursive: true });
}
