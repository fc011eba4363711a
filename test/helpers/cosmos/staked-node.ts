/** One validator with stake as a process of its own, and the command line beside it in this one. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { DEFAULT_PORTS, type PortName } from "../../../chain/networks.js";
import { createTestnet } from "../../../cli/home/network/testnet.js";
import { parseModuleParams } from "../../../node/settings/module-params.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { type MinedResponse, type Printed, runCommand, runTx } from "../processes/command-line.js";
import { kitOffset } from "../kit.js";
import { type NodeProcess, nodeReport, startNodeProcess } from "../processes/node-process.js";
import { until } from "../until.js";

const TOKEN = 10n ** 18n;

const HOUR_MS = 3_600_000;

/** What puts the clock of the node's process forward. */
const CLOCK = pathToFileURL(path.resolve("test/helpers/faults/lab/clock-steps.mjs")).href;

/** Blocks, hours of them: nobody is jailed for not signing, however long a busy machine takes. */
export const UNHURRIED_WINDOW = 100_000;

/** What `playStake` leaves. */
export interface StakeScene {
  /** The validator, in bech32. */
  readonly operator: string;
  /** Its consensus address, in bech32. */
  readonly consensus: string;
  /** The vote's transaction. */
  readonly voted: MinedResponse;
}

/** A network of one validator with its own operator and faucet. */
export class StakedNode {
  private constructor(
    readonly folder: string,
    readonly portOffset: number,
    private readonly node: NodeProcess,
  ) {}

  /**
   * Starts it and waits for its first blocks.
   * @param params of the modules, as `--param` takes them
   * @param alloc further accounts of genesis, as its file has them
   */
  static async start(
    params: Readonly<Record<string, string>>,
    alloc: Readonly<Record<string, unknown>> = {},
  ): Promise<StakedNode> {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-staked-"));
    const portOffset = kitOffset(0);
    await createTestnet({
      out: folder,
      validators: 1,
      fullNodes: 0,
      portOffset,
      blockIntervalMs: 150,
      modules: parseModuleParams(params),
      clock: systemClock,
    });
    const genesisFile = path.join(folder, "node0", "config", "genesis.json");
    const genesis = JSON.parse(fs.readFileSync(genesisFile, "utf8")) as { alloc: object };
    Object.assign(genesis.alloc, alloc);
    fs.writeFileSync(genesisFile, JSON.stringify(genesis));
    const node = await startNodeProcess(path.join(folder, "node0"), [], {
      NODE_OPTIONS: `--import=${CLOCK}`,
      CAUSEWAY_TEST_CLOCK_STEPS: String(HOUR_MS),
    });
    const started = new StakedNode(folder, portOffset, node);
    await until(async () => (await started.height()) >= 2, {
      timeoutMs: 60_000,
      what: `the first blocks\n${node.errors()}`,
    });
    return started;
  }

  /** One on which nobody is jailed before a test says so, and coins and votes wait for it. */
  static startUnhurried(): Promise<StakedNode> {
    return StakedNode.start({
      "staking.unbonding_time": "600s",
      "gov.voting_period": "3000s",
      "gov.min_deposit": "1000",
      "slashing.signed_blocks_window": `${UNHURRIED_WINDOW}`,
      "slashing.downtime_jail_duration": "1s",
    });
  }

  get home(): string {
    return path.join(this.folder, "node0");
  }

  /** File with the key of the faucet. */
  get faucetKey(): string {
    return path.join(this.folder, "faucet.key");
  }

  url(port: PortName): string {
    return `http://127.0.0.1:${DEFAULT_PORTS[port] + this.portOffset}`;
  }

  async height(): Promise<number> {
    return (await nodeReport(DEFAULT_PORTS.cometRpc + this.portOffset))?.height ?? 0;
  }

  /** Writes a file below the network's folder. @returns its path */
  write(name: string, text: string): string {
    const file = path.join(this.folder, name);
    fs.writeFileSync(file, text, { mode: 0o600 });
    return file;
  }

  /** Runs `causeway WORDS` on its home. */
  run(...words: readonly string[]): Promise<Printed> {
    return runCommand(this.home, words);
  }

  /** Has a transaction mined. @returns its `TxResponse`, whatever its code */
  tx(...words: readonly string[]): Promise<MinedResponse> {
    return runTx(this.home, words);
  }

  /** Has a transaction of the faucet mined, which must succeed. */
  async done(...words: readonly string[]): Promise<MinedResponse> {
    const mined = await this.tx(...words, "--from", this.faucetKey);
    if (mined.code !== 0) throw new Error(`${words.join(" ")}: ${mined.code} ${mined.raw_log}`);
    return mined;
  }

  /** The faucet delegates, takes a part back, proposes (as proposal 1) and votes. */
  async playStake(): Promise<StakeScene> {
    const { body } = await this.get("/cosmos/staking/v1beta1/validators");
    const [validator] = (body as { validators: { operator_address: string }[] }).validators;
    const operator = validator?.operator_address ?? "";
    await this.done("staking", "delegate", operator, `${5n * TOKEN}atoken`);
    await this.done("staking", "unbond", operator, `${TOKEN}atoken`);
    const proposal = { messages: [], metadata: "words", title: "Words", summary: "Nothing else" };
    const text = JSON.stringify({ ...proposal, deposit: `${10n * TOKEN}atoken` });
    await this.done("gov", "submit-proposal", this.write("words.json", text));
    const voted = await this.done("gov", "vote", "1", "yes");
    const infos = await this.get("/cosmos/slashing/v1beta1/signing_infos");
    const consensus = (infos.body as { info: { address: string }[] }).info[0]?.address ?? "";
    return { operator, consensus, voted };
  }

  /**
   * Has a validator registered that never signs: its operator gets coins of the faucet, and stakes one.
   * @param operatorKey private key, 0x hex; it lies in `joiner.key` from then on
   */
  async joinValidator(operatorKey: string): Promise<MinedResponse> {
    const operator = toBech32(parseAddress(new Wallet(operatorKey).address));
    const keyFile = this.write("joiner.key", `${operatorKey}\n`);
    await this.done("bank", "send", operator, `${60n * TOKEN}atoken`);
    const pubkey = { "@type": "/cosmos.crypto.ed25519.PubKey", key: Buffer.alloc(32, 5) };
    const file = this.write(
      "validator.json",
      JSON.stringify({
        pubkey: { ...pubkey, key: pubkey.key.toString("base64") },
        amount: `${TOKEN}atoken`,
        moniker: "joiner",
        website: "https://joiner.example",
        "commission-rate": "0.05",
        "commission-max-rate": "0.5",
        "commission-max-change-rate": "0.1",
        "min-self-delegation": "1",
      }),
    );
    return this.tx("staking", "create-validator", file, "--from", keyFile);
  }

  /** Lets an hour pass at once, which can be done once: the next block is of that time. */
  passHour(): void {
    this.node.process.kill("SIGUSR2");
  }

  /** A GET of the REST interface. */
  async get(route: string, height?: number): Promise<{ status: number; body: unknown }> {
    const headers: Record<string, string> = {};
    if (height !== undefined) headers["x-cosmos-block-height"] = `${height}`;
    const answer = await fetch(`${this.url("rest")}${route}`, { headers });
    return { status: answer.status, body: await answer.json() };
  }

  async close(): Promise<void> {
    this.node.process.kill("SIGKILL");
    await this.node.ended;
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}
