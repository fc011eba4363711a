/** An explorer over a real node: one process for the node, the explorer in the test's own. */
import fs from "node:fs";
import path from "node:path";
import { bech32 } from "@scure/base";
import {
  Contract,
  ContractFactory,
  getBytes,
  JsonRpcProvider,
  type TransactionReceipt,
  Wallet,
} from "ethers";
import { NETWORKS } from "../../../chain/networks.js";
import { createProgram } from "../../../cli/program/program.js";
import { createExplorer, type Explorer } from "../../../explorer/app.js";
import { explorerConfig } from "../../../explorer/config.js";
import { loadConfig } from "../../../runtime/config/config.js";
import { loadTokenFile } from "../../../runtime/config/token-file.js";
import { type Clock, systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { createVolume, freeOffset, initVolume } from "../mesh/mesh-container.js";
import { type NodeProcess, nodeReport, startNodeProcess } from "../processes/node-process.js";
import { freePort } from "../ports.js";
import { type RawReply, rawRequest } from "../http/raw-request.js";
import { all, type HtmlElement, parseHtml, textOf } from "./html.js";
import { type CompiledContract, compileFixture } from "../contracts/solidity.js";
import { until } from "../until.js";

/** What is mined before the tests. */
export interface Scene {
  readonly sender: string;
  readonly other: string;
  readonly plain: TransactionReceipt;
  readonly internal: TransactionReceipt;
  readonly failed: TransactionReceipt;
  readonly transfer: TransactionReceipt;
  readonly token: string;
  readonly pair: string;
  /** Hash of a bank transaction, upper case: 3 TOKEN to `CUSTOMER`, with a memo that is HTML. */
  readonly sent: string;
}

/** Who gets coins on the Cosmos side. */
export const CUSTOMER = `0x${"c5".repeat(20)}`;

/** Parameters of the modules with which `playStake` comes to an end. */
export const STAKE_PARAMS = [
  "staking.unbonding_time=86400s",
  "gov.voting_period=12s",
  "gov.min_deposit=1000",
] as const;

/** One page of each kind, by name. @param operator who runs the chain's validator, in bech32 */
export function pagesOf(scene: Scene, operator: string): Readonly<Record<string, string>> {
  return {
    home: "/",
    blocks: "/blocks",
    block: `/block/${scene.plain.blockNumber}`,
    transaction: `/tx/${scene.transfer.hash}`,
    failed: `/tx/${scene.failed.hash}`,
    account: `/address/${scene.sender}`,
    contract: `/address/${scene.token}`,
    receiver: `/address/${scene.other}`,
    validators: "/validators",
    validator: `/validator/${operator}`,
    proposals: "/proposals",
    proposal: "/proposal/1",
    parameters: "/parameters",
    verification: `/contract/${scene.token}`,
    supply: "/supply",
    tokens: "/tokens",
    token: `/token/${scene.token}`,
    pairs: "/pairs",
    pair: `/pair/${scene.pair}`,
    search: "/search?q=nothing-like-this",
    deposit: "/deposit",
    arrived: `/deposit?tx=${scene.internal.hash}`,
    bankTransaction: `/tx/${scene.sent}`,
    bankDeposit: `/deposit?tx=${scene.sent}`,
    verify: "/verify",
    unknown: `/tx/0x${"77".repeat(32)}`,
    missing: "/no/such/page",
  };
}

/** Chain, node and explorer of one test file. */
export class ExplorerStage {
  readonly provider: JsonRpcProvider;
  readonly stopping = new AbortController();

  private constructor(
    readonly home: string,
    readonly offset: number,
    private readonly node: NodeProcess,
    readonly explorer: Explorer,
  ) {
    const url = `http://127.0.0.1:${8545 + offset}`;
    this.provider = new JsonRpcProvider(url, 6940, {
      staticNetwork: true,
      pollingInterval: 50,
      cacheTimeout: -1,
    });
  }

  /** @param params of the chain's modules, as `--param` takes them */
  static async open(
    slot: number,
    env: Readonly<Record<string, string>> = {},
    params: readonly string[] = [],
  ) {
    const home = createVolume();
    const offset = await freeOffset(slot);
    await initVolume(home, offset, params);
    const node = await startNodeProcess(home, ["--port-offset", String(offset)]);
    await until(async () => ((await nodeReport(26657 + offset))?.height ?? 0) >= 2, {
      timeoutMs: 60_000,
      what: "the node makes blocks",
    });
    const stopping = new AbortController();
    const explorer = await openExplorer(home, offset, stopping.signal, env);
    const stage = new ExplorerStage(home, offset, node, explorer);
    stage.stopping.signal.addEventListener("abort", () => stopping.abort());
    return stage;
  }

  get url(): string {
    return `http://127.0.0.1:${this.explorer.server.port}`;
  }

  /** GET without a client's own ideas: redirects and encodings are left alone. */
  get(target: string, headers: Record<string, string> = {}, method = "GET"): Promise<RawReply> {
    return rawGet(this.explorer.server.port, target, headers, method);
  }

  /** A page, and what stands in its `main`. */
  async page(
    target: string,
    headers: Record<string, string> = {},
  ): Promise<{ reply: RawReply; root: HtmlElement; text: string }> {
    const reply = await this.get(target, headers);
    const root = parseHtml(reply.text);
    const main = all(root, "main")[0];
    if (main === undefined) throw new Error("no main");
    return { reply, root, text: textOf(main) };
  }

  async play(): Promise<Scene> {
    const compiled = compileFixture("Explorer.sol");
    const key = fs.readFileSync(path.join(this.home, "config", "faucet.key"), "utf8").trim();
    const wallet = new Wallet(key, this.provider);
    let nonce = await wallet.getNonce();
    const price = { type: 0, gasPrice: 25_000_000n };
    const deploy = async (contract: CompiledContract | undefined, args: unknown[]) => {
      if (contract === undefined) throw new Error("the fixture did not compile");
      const factory = new ContractFactory([...contract.abi], contract.bytecode, wallet);
      const made = await factory.deploy(...args, { ...price, nonce: nonce++ });
      return made.waitForDeployment().then(() => made.getAddress());
    };
    const token = await deploy(compiled["HostileToken"], []);
    const pair = await deploy(compiled["PairLike"], [token, `0x${"12".repeat(20)}`]);
    const contract = new Contract(token, [...(compiled["HostileToken"]?.abi ?? [])], wallet);
    const other = `0x${"b0".repeat(20)}`;
    const mined = async (fields: { to: string; data?: string; value?: bigint }) => {
      const gasLimit = 300_000n;
      const sent = await wallet.sendTransaction({ ...price, gasLimit, ...fields, nonce: nonce++ });
      await until(async () => (await this.provider.getTransactionReceipt(sent.hash)) !== null, {
        timeoutMs: 30_000,
      });
      const receipt = await this.provider.getTransactionReceipt(sent.hash);
      if (receipt === null) throw new Error("the receipt went away");
      return receipt;
    };
    const call = (name: string, args: unknown[]) =>
      contract.interface.encodeFunctionData(name, args);
    const plain = await mined({ to: other, value: 1_500_000_000_000_000_000n });
    const internal = await mined({ to: token, data: call("pass", [other]), value: 7n });
    const failed = await mined({ to: token, data: call("refuse", []), value: 3n });
    const transfer = await mined({ to: token, data: call("transfer", [other, 2_500_000n]) });
    const faucet = path.join(this.home, "config", "faucet.key");
    const customer = bech32.encode("addr", bech32.toWords(getBytes(CUSTOMER)));
    const words = [faucet, customer, `${3n * 10n ** 18n}atoken`, "--from", faucet];
    const sentHash = await this.tx("bank", "send", ...words, "--note", "<b>rent</b>");
    // Final on every page.
    const last = await this.provider.getBlockNumber();
    await until(async () => (await this.provider.getBlockNumber()) >= last + 2, {
      timeoutMs: 30_000,
    });
    const { address: sender } = wallet;
    return { sender, other, plain, internal, failed, transfer, token, pair, sent: sentHash };
  }

  /**
   * The faucet delegates and takes back, and the validator proposes something and agrees to it: in one
   * transaction, because the time to vote is short.
   * @returns who runs the chain's validator, in bech32
   */
  async playStake(): Promise<string> {
    const config = (name: string) => path.join(this.home, "config", name);
    const key = fs.readFileSync(config("operator.key"), "utf8").trim();
    const operator = bech32.encode(
      "addrvaloper",
      bech32.toWords(getBytes(new Wallet(key).address)),
    );
    const from = ["--from", config("faucet.key")];
    await this.tx("staking", "delegate", operator, `${10n ** 19n}atoken`, ...from);
    await this.tx("staking", "unbond", operator, `${3n * 10n ** 18n}atoken`, ...from);
    const file = config("proposal.json");
    const hostile = '<img src=x onerror=alert("title")>';
    const proposal = { messages: [], deposit: "1000atoken", title: hostile, summary: hostile };
    fs.writeFileSync(file, JSON.stringify({ ...proposal, metadata: "none" }));
    const signer = ["--from", config("operator.key")];
    const draft = ["--generate-only", "--gas", "1000000", "--fees", "25000atoken"];
    const transaction = JSON.parse(
      await this.command("gov", "submit-proposal", file, ...signer, ...draft),
    );
    const { messages } = transaction.body;
    const vote = { proposal_id: "1", voter: messages[0].proposer, option: "VOTE_OPTION_YES" };
    messages.push({ "@type": "/cosmos.gov.v1.MsgVote", ...vote, metadata: "" });
    fs.writeFileSync(file, JSON.stringify(transaction));
    fs.writeFileSync(file, await this.command("sign", file, ...signer));
    await this.tx("broadcast", file);
    return operator;
  }

  /** Has a transaction of the Cosmos side mined, by the command line; its hash. */
  async tx(...words: readonly string[]): Promise<string> {
    const flags = ["--yes", "--broadcast-mode", "block", "--output", "json"];
    const printed = await this.command(...words, ...flags);
    if (!printed.includes('"code":0')) throw new Error(`${words.join(" ")}: ${printed}`);
    return /"txhash":"([0-9A-F]{64})"/.exec(printed)?.[1] ?? "";
  }

  /** What `causeway tx WORDS` prints; warnings are left out. */
  private async command(...words: readonly string[]): Promise<string> {
    const printed: string[] = [];
    const program = createProgram({
      version: "0",
      env: {},
      signal: this.stopping.signal,
      print: (line) => printed.push(line),
      warn: () => undefined,
      setExitCode: () => undefined,
    });
    await program.parseAsync(["node", "causeway", "tx", ...words, "--home", this.home]);
    return printed.join("\n");
  }

  /** Stops the node; the explorer goes on. */
  async stopNode(): Promise<void> {
    this.node.process.kill("SIGTERM");
    await this.node.ended;
  }

  async close(): Promise<void> {
    this.provider.destroy();
    this.stopping.abort();
    for (const service of this.explorer.services.toReversed()) await service.stop();
    await this.stopNode();
    fs.rmSync(this.home, { recursive: true, force: true });
  }
}

/** A further explorer over the node of a home. */
export async function openExplorer(
  home: string,
  offset: number,
  signal: AbortSignal,
  env: Readonly<Record<string, string>>,
  clock: Clock = systemClock,
): Promise<Explorer> {
  const port = await freePort();
  const sources = {
    home,
    portOffset: offset,
    env: { CAUSEWAY_EXPLORER_SERVER_LISTEN: `127.0.0.1:${port}`, ...env },
  };
  const explorer = createExplorer({
    home,
    config: loadConfig(sources, explorerConfig),
    network: NETWORKS.testnet,
    tokens: loadTokenFile(home),
    clock,
    log: createLogger({ component: "explorer", level: "error" }),
    metrics: createMetrics({ processMetrics: false }),
    signal,
  });
  await explorer.start();
  return explorer;
}

/** One request over a connection of its own. */
export function rawGet(
  port: number,
  target: string,
  headers: Record<string, string> = {},
  method = "GET",
): Promise<RawReply> {
  return rawRequest(port, target, { headers, method });
}
