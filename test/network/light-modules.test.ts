/**
 * Four validators as processes whose set is changed in every way that there is: by a delegation, by
 * one that registers, by downtime and back, by two signatures of one key; and an upgrade that halts
 * all of them. CometBFT's light client, which trusted a header at the beginning, follows throughout.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fs from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../chain/address.js";
import { privateKeyToAddress } from "../../chain/signing/account-key.js";
import { hexToBytes } from "../../chain/hex.js";
import { homePaths } from "../../cli/home/home.js";
import { runCommand, runTx } from "../helpers/processes/command-line.js";
import { until } from "../helpers/until.js";
import { comet } from "./calls.js";
import { auditChain, readHeader } from "./chain-audit.js";
import { type LightClient, startLightClient } from "./light.js";
import { type NetworkNode, type RunningNetwork, startNetwork, untilHeight } from "./network.js";

const POLL_MS = 200;
const PATIENCE = { timeoutMs: 180_000 };

const TOKEN = 10n ** 18n;
const JOINER_KEY = `0x${"7a".repeat(32)}`;
const AUTHORITY = toBech32(parseAddress(`0x${"00".repeat(18)}0805`));

interface Validators {
  readonly validators: readonly { readonly address: string; readonly voting_power: string }[];
}

let network: RunningNetwork;
let nodes: readonly NetworkNode[];
let client: LightClient;

/** A node by its place; the full nodes come behind the validators. */
function node(index: number): NetworkNode {
  const found = [...nodes, ...network.fullNodes][index];
  if (found === undefined) throw new Error(`no node ${index}`);
  return found;
}

function keyFile(index: number): string {
  return path.join(homePaths(node(index).home).config, "operator.key");
}

/** Operator of a validator of genesis, as its own commands name it. */
function operatorOf(file: string): string {
  const key = hexToBytes(fs.readFileSync(file, "utf8").trim());
  return toBech32(privateKeyToAddress(key), VALIDATOR_PREFIX);
}

async function sent(index: number, ...words: readonly string[]): Promise<number> {
  const { code, raw_log, height } = await runTx(node(index).home, words);
  expect([words.join(" "), code, raw_log]).toEqual([words.join(" "), 0, ""]);
  return Number(height);
}

/** Power of a node's key in the newest set; undefined outside of it. */
async function powerOf(index: number): Promise<string | undefined> {
  const { address } = (await node(index).status()).validator_info;
  const { validators } = await comet<Validators>(node(0), "validators?per_page=100");
  return validators.find((one) => one.address === address)?.voting_power;
}

/** Waits until it has that power, and has the light client prove a header of the new set. */
async function follows(index: number, power: string | undefined, what: string): Promise<void> {
  await until(
    async () => {
      await pause(POLL_MS);
      return (await powerOf(index)) === power;
    },
    { ...PATIENCE, what },
  );
  await verified((await node(0).height()) + 1);
}

/** The light client's header of a height is the chain's. */
async function verified(height: number): Promise<void> {
  await untilHeight([node(0), node(1)], height);
  const { signed_header } = await client.commit(height);
  const { hash, validatorsHash } = await readHeader(node(1), height);
  expect(signed_header.commit.block_id.hash).toBe(hash);
  expect(signed_header.header.validators_hash).toBe(validatorsHash);
}

beforeAll(async () => {
  network = await startNetwork({
    validators: 4,
    fullNodes: 2,
    blockIntervalMs: 200,
    hasShortTimeouts: true,
    params: {
      // Long enough that a busy machine alone jails nobody.
      "slashing.signed_blocks_window": "40",
      "slashing.min_signed_per_window": "0.3",
      "slashing.downtime_jail_duration": "1s",
      "gov.voting_period": "6s",
      "gov.min_deposit": "1000",
    },
  });
  nodes = network.validators;
  await untilHeight(nodes, 4);
  const { hash } = await readHeader(node(0), 3);
  const trusted = { primary: node(0), witness: node(1), height: 3, hash };
  client = await startLightClient({ network, ...trusted });
});
afterAll(async () => {
  await client?.stop();
  await network?.remove();
});

describe("the set of four validators", () => {
  it("has more power by a delegation", async () => {
    const amount = `${30n * TOKEN}atoken`;
    const faucet = network.faucetKeyFile;
    await sent(0, "staking", "delegate", operatorOf(keyFile(0)), amount, "--from", faucet);
    await follows(0, "130", "the power of the delegation");
  });

  it("is joined by one that registers", async () => {
    const joiner = 4;
    await node(joiner).start();
    const key = path.join(network.folder, "joiner.key");
    fs.writeFileSync(key, `${JOINER_KEY}\n`, { mode: 0o600 });
    const account = toBech32(privateKeyToAddress(hexToBytes(JOINER_KEY)));
    const amount = `${150n * TOKEN}atoken`;
    await sent(0, "bank", "send", network.faucetKeyFile, account, amount);
    await untilHeight([node(joiner)], await node(0).height());
    const stake = ["--amount", `${120n * TOKEN}atoken`, "--moniker", "joiner"];
    await sent(joiner, "staking", "create-validator", ...stake, "--from", key);
    await follows(joiner, "120", "the new validator");
    const from = (await node(joiner).height()) + 1;
    await until(
      async () => {
        await pause(POLL_MS);
        const { address } = (await node(joiner).status()).validator_info;
        const { signed_header } = await comet<Commit>(node(0), "commit");
        const { height, signatures } = signed_header.commit;
        const isSigned = signatures.some((one) => one.validator_address === address);
        return Number(height) >= from && isSigned;
      },
      { ...PATIENCE, what: "the new validator's signature" },
    );
  });

  it("loses one that is down, and has it back when it asks", async () => {
    await node(3).kill();
    const gone = parseAddress(node(3).written.validatorAddress).slice(2).toUpperCase();
    await until(
      async () => {
        await pause(POLL_MS);
        const { validators } = await comet<Validators>(node(0), "validators?per_page=100");
        return !validators.some(({ address }) => address === gone);
      },
      { ...PATIENCE, what: "the jail" },
    );
    await verified((await node(0).height()) + 1);
    await node(3).start();
    await untilHeight([node(3)], await node(0).height());
    const unjail = ["slashing", "unjail", "--from", "operator"];
    await until(
      async () => {
        await pause(POLL_MS);
        const { code } = await runCommand(node(3).home, ["tx", ...unjail, "--dry-run"]);
        return code === 0;
      },
      { ...PATIENCE, what: "the end of the jail" },
    );
    await sent(3, ...unjail);
    // 1 % of 100 is gone.
    await follows(3, "99", "the return");
  });

  it("loses one that signs twice, for ever", async () => {
    // The operator's mistake: the same key on two machines.
    const [original, twin] = [node(2), node(5)];
    fs.copyFileSync(homePaths(original.home).validatorKey, homePaths(twin.home).validatorKey);
    await twin.start();
    await follows(2, undefined, "the tombstone");
    const unjail = ["tx", "slashing", "unjail", "--from", "operator", "--dry-run"];
    const { err } = await runCommand(original.home, unjail);
    expect(err).toContain("validator still jailed; cannot be unjailed");
  });

  it("halts before the height of an upgrade that nobody's program knows, and stays up", async () => {
    const height = (await node(0).height()) + 100;
    const proposal = path.join(network.folder, "proposal.json");
    const plan = { name: "v9", height: `${height}`, info: "get 9.0" };
    const message = {
      "@type": "/cosmos.upgrade.v1beta1.MsgSoftwareUpgrade",
      authority: AUTHORITY,
      plan,
    };
    const text = { messages: [message], metadata: "", deposit: "1000atoken" };
    fs.writeFileSync(proposal, JSON.stringify({ ...text, title: "Nine", summary: "All of it" }));
    await sent(0, "gov", "submit-proposal", proposal, "--from", "operator");
    const voters = [0, 1, 3].map((index) =>
      sent(index, "gov", "vote", "1", "yes", "--from", "operator"),
    );
    await Promise.all(voters);
    const inSet = [0, 1, 3, 4].map(node);
    const words = `UPGRADE \\"v9\\" NEEDED at height: ${height}: get 9.0`;
    await until(
      async () => {
        await pause(POLL_MS);
        return inSet.every(({ output }) => output.includes(words));
      },
      { timeoutMs: 300_000, what: "the halt of all" },
    );
    for (const one of inSet) {
      expect([one.name, await one.height()]).toEqual([one.name, height - 1]);
      const info = path.join(one.home, "data", "upgrade-info.json");
      expect(JSON.parse(fs.readFileSync(info, "utf8"))).toMatchObject({ name: "v9", height });
    }
    // The processes serve what there is: the light client proves the last header.
    await verified(height - 1);
    await auditChain(inSet, height - 1);
    await Promise.all(inSet.map((one) => one.stop()));
  });
});

interface Commit {
  readonly signed_header: {
    readonly commit: {
      readonly height: string;
      readonly signatures: readonly { readonly validator_address: string }[];
    };
  };
}
