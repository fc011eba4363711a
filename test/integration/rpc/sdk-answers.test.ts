/**
 * REST and CosmJS' wallet held against a node of cosmos/evm (SDK 0.54.3): its recorded answers
 * (`test/fixtures/rpc/sdk-rest.json`), and the codes and words of its modules' refusals.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { spawn } from "node:child_process";
import fs from "node:fs";
import { Wallet } from "ethers";
import {
  CONSENSUS_PREFIX,
  parseAddress,
  toBech32,
  VALIDATOR_PREFIX,
} from "../../../chain/address.js";
import { differences } from "../../helpers/cosmos/sdk-oracle/likeness.js";
import { record } from "../../helpers/cosmos/sdk-oracle/record.js";
import type { Answer, Places } from "../../helpers/cosmos/sdk-oracle/shapes.js";
import { StakedNode } from "../../helpers/cosmos/staked-node.js";

const TOKEN = 10n ** 18n;
const stranger = new Wallet(`0x${"5a".repeat(32)}`);
const nobody = parseAddress(`0x${"99".repeat(20)}`);

/** Where the answers differ because the chains or their releases do, and how ours is answered. */
const OWN: readonly (readonly [RegExp, number, string])[] = [
  [/\/(authz|feegrant)\/|^\/ibc\//, 501, "modules that this chain has not"],
  [/\/params\/v1beta1\/subspaces/, 200, "parameters by subspace, of SDK 0.46"],
  [/\/params\/v1beta1\/params/, 404, "parameters by subspace, of SDK 0.46"],
  [/supply\/\{denom\}|txs\?events=/, 200, "forms of SDK 0.46"],
  [/abci_query/, 200, "paths of methods are answered, and refused in the answer"],
  [/page=99/, 200, "a page behind the last is empty"],
  [/txs\/AB$/, 400, "half a hash"],
  [/deposits\/\{nobody\}/, 400, "as in SDK 0.53"],
  [/(votes|deposits)\/\{delegator\}/, 200, "votes stay readable, and theirs was over"],
  [/gov\/v1beta1\/proposals(\/\{proposal\})?$/, 200, "a proposal without messages has no content"],
];

/** Members that SDK 0.54 has and 0.53, whose interfaces these are, has not; and a chain id 9001. */
const NEWER =
  /(_block_height|params\.authority|max_supply) is missing|(chain_id|network) is text, not integer/;

/** How a CosmJS wallet is refused: code, codespace, words (x/auth/ante, x/.../keeper of the SDK). */
const REFUSALS: Readonly<Record<string, readonly [number, string, RegExp]>> = {
  "sequence ahead": [
    32,
    "sdk",
    /^account sequence mismatch, expected 0, got 5: incorrect account sequence$/,
  ],
  "another chain": [4, "sdk", /^signature verification failed; please verify account number/],
  "another account number": [4, "sdk", /^signature verification failed; please verify account/],
  "memo too long": [
    12,
    "sdk",
    /^maximum number of characters is 256 but received 300 characters: memo too large$/,
  ],
  "gas for its bytes missing": [11, "sdk", /^out of gas in location: \w+; gasWanted: 1000, gasU/],
  "height passed": [30, "sdk", /^block height: \d+, timeout height: 1: tx timeout height$/],
  "fee above the balance": [5, "sdk", /^spendable balance \d+atoken is smaller than .*: insuffici/],
  "fee granter": [37, "sdk", /fee grants are not supported.*: feature not supported$/],
  "unknown message": [2, "sdk", /unable to resolve type URL "?\/nothing.*: tx parse error$/],
  "no transaction": [2, "sdk", /: tx parse error$/],
  "another signature": [4, "sdk", /: unauthorized$/],
  "no signature": [15, "sdk", /^no signatures supplied$/],
  "more than the balance": [5, "sdk", /spendable balance \d+atoken is smaller than .*: insuffici/],
};

/**
 * Failures whose numbers or words are our own. Where the SDK answers an error of its store or of gRPC
 * with code 1, for which its clients have no words, we say what is missing.
 */
const OWN_FAILURES: Readonly<Record<string, readonly [number, string, RegExp]>> = {
  "no address": [7, "sdk", /^invalid to address: nonsense: invalid address$/],
  "no coins": [10, "sdk", /^invalid coins$/],
  "delegation to nonsense": [7, "sdk", /^invalid validator address: nonsense: invalid address$/],
  "withdraw address of nonsense": [
    7,
    "sdk",
    /^invalid withdraw address: nonsense: invalid address$/,
  ],
  // Refused before a block has it.
  "delegation above the balance": [5, "sdk", /^spendable balance \d+\{denom\} is smaller than /],
  "vote without option": [7, "gov", /^option 0 with weight 1\.0+: invalid vote option$/],
  "vote of another option": [7, "gov", /^option 9 with weight 1\.0+: invalid vote option$/],
  "cancelling without unbonding": [38, "sdk", /^unbonding delegation .*: not found$/],
  "weighted vote without options": [18, "sdk", /^weighted vote options cannot be empty: /],
  "deposit on nothing": [2, "gov", /^999: unknown proposal$/],
  "deposit of another coin on nothing": [2, "gov", /^999: unknown proposal$/],
  "cancelling of no proposal": [2, "gov", /^999: unknown proposal$/],
};

let node: StakedNode;
let places: Places;

beforeAll(async () => {
  node = await StakedNode.start({ "staking.unbonding_time": "600s", "gov.voting_period": "600s" });
  const key = fs.readFileSync(node.faucetKey, "utf8").trim();
  const faucet = parseAddress(new Wallet(key).address);
  const { operator, consensus, voted } = await node.playStake();
  const sent = node.tx(
    "bank",
    "send",
    node.faucetKey,
    toBech32(parseAddress(stranger.address)),
    `${TOKEN}atoken`,
  );
  expect(await sent).toMatchObject({ code: 0 });
  places = {
    delegator: toBech32(faucet),
    nobody: toBech32(nobody),
    operator,
    nobodyOperator: toBech32(nobody, VALIDATOR_PREFIX),
    consensus,
    nobodyConsensus: toBech32(nobody, CONSENSUS_PREFIX),
    denom: "atoken",
    height: "2",
    proposal: "1",
    tx: voted.txhash,
    txHeight: voted.height,
    hex: faucet.toLowerCase(),
    nobodyHex: nobody,
  };
});

afterAll(() => node?.close());

describe("REST beside a node of cosmos/evm", () => {
  it("answers with its members, statuses and codes", async () => {
    const { answers } = JSON.parse(fs.readFileSync("test/fixtures/rpc/sdk-rest.json", "utf8")) as {
      answers: Readonly<Record<string, Answer>>;
    };
    const ours = await record(node.url("rest"), places);
    const differing: Record<string, unknown> = {};
    for (const [route, own] of Object.entries(ours)) {
      const theirs = answers[route];
      if (theirs === undefined) throw new RangeError(`${route} is not recorded`);
      const [, status] = OWN.find(([pattern]) => pattern.test(route)) ?? [];
      if (status !== undefined) {
        if (own.status !== status) differing[route] = { own, status };
        continue;
      }
      // What a client did wrong is no fault of the server, as which the SDK shows some of it.
      if (theirs.status === 500 && (own.status === 400 || own.status === 404)) continue;
      const found = differences(own, theirs).filter((text) => !NEWER.test(text));
      if (found.length > 0) differing[route] = found;
    }
    expect(differing).toEqual({});
  });

  it("takes the height with the gateway's prefix of metadata, too", async () => {
    const route = `${node.url("rest")}/cosmos/bank/v1beta1/supply/by_denom?denom=atoken`;
    const ask = async (header: string) => {
      const answer = await fetch(route, { headers: { [header]: "2" } });
      return [answer.headers.get("x-cosmos-block-height"), await answer.json()];
    };
    const plain = await ask("x-cosmos-block-height");
    expect(plain[0]).toBe("2");
    expect(await ask("Grpc-Metadata-X-Cosmos-Block-Height")).toEqual(plain);
  });

  it("says of another verb what it says of no route", async () => {
    const route = `${node.url("rest")}/cosmos/bank/v1beta1/params`;
    for (const method of ["POST", "PUT", "DELETE"]) {
      const answer = await fetch(route, { method });
      expect([method, answer.status, await answer.json()]).toEqual([
        method,
        501,
        { code: 12, message: "Not Implemented", details: [] },
      ]);
    }
  });

  it("broadcasts no query, and says so of modes that there are no more", async () => {
    const path = encodeURIComponent('"/cosmos.tx.v1beta1.Service/BroadcastTx"');
    const asked = await fetch(`${node.url("cometRpc")}/abci_query?path=${path}`);
    expect(await asked.json()).toMatchObject({
      result: {
        response: { code: 18, log: "can't route a broadcast tx message: invalid request" },
      },
    });
    for (const mode of ["BROADCAST_MODE_BLOCK", 9]) {
      const answer = await fetch(`${node.url("rest")}/cosmos/tx/v1beta1/txs`, {
        method: "POST",
        body: JSON.stringify({ tx_bytes: "AAAA", mode }),
      });
      expect([mode, answer.status, await answer.json()]).toEqual([
        mode,
        400,
        expect.objectContaining({
          message: expect.stringContaining(`type ${mode}; supported types: sync, async`),
        }),
      ]);
    }
  });
});

describe("a CosmJS wallet", () => {
  interface Refusal {
    readonly code: number;
    readonly codespace: string;
    readonly log: string;
  }
  interface Told {
    readonly refusals: Readonly<Record<string, Refusal>>;
    readonly simulations: Readonly<Record<string, { status: number; body: { message: string } }>>;
  }

  /** What a simulation answers of two sends (cosmos/evm, SDK 0.54.3). */
  const TWO_SENDS = {
    data:
      "EiYKJC9jb3Ntb3MuYmFuay52MWJldGExLk1zZ1NlbmRSZXNwb25zZRImCiQvY29zbW9zLmJhbmsudjFiZXRhMS5Nc2dT" +
      "ZW5kUmVzcG9uc2U=",
    msg_responses: [
      { "@type": "/cosmos.bank.v1beta1.MsgSendResponse" },
      { "@type": "/cosmos.bank.v1beta1.MsgSendResponse" },
    ],
  };

  /** What a script of the oracle prints that has the stranger's key. */
  async function run<Result>(script: string): Promise<Result> {
    const input = {
      url: node.url("cometRpc"),
      rest: node.url("rest"),
      key: stranger.privateKey.slice(2),
      prefix: "addr",
      denom: "atoken",
      operator: places["operator"],
      nobody: places["nobody"],
      nobodyOperator: places["nobodyOperator"],
      blocked: toBech32(parseAddress(`0x${"0".repeat(36)}0800`)),
      feeAmount: "50000",
    };
    const child = spawn(process.execPath, [`test/helpers/cosmos/sdk-oracle/${script}`], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, NODE_OPTIONS: "" },
    });
    child.stdin.end(JSON.stringify(input));
    const chunks: Buffer[] = [];
    for await (const chunk of child.stdout) chunks.push(chunk as Buffer);
    return JSON.parse(Buffer.concat(chunks).toString()) as Result;
  }

  it("is refused with the SDK's codes and words", async () => {
    const { refusals, simulations } = await run<Told>("cosmjs-refusals.mjs");
    for (const [name, [code, codespace, words]] of Object.entries(REFUSALS)) {
      expect([name, refusals[name]]).toEqual([
        name,
        expect.objectContaining({ code, codespace, log: expect.stringMatching(words) }),
      ]);
    }
    expect(simulations["of a failure"]).toMatchObject({
      status: 500,
      body: { message: expect.stringMatching(/validator does not exist with gas used: '\d+'$/) },
    });
  });

  it("is told what each message of a simulation answered", async () => {
    const { simulations } = await run<Told>("cosmjs-refusals.mjs");
    expect(simulations["of two messages"]).toMatchObject({
      status: 200,
      body: { result: TWO_SENDS },
    });
  });

  it("is told by name which modules there are not, and what to do instead", async () => {
    const { refusals, simulations, queries } = await run<{
      readonly refusals: Readonly<Record<string, Refusal>>;
      readonly simulations: Readonly<Record<string, string>>;
      readonly queries: Readonly<Record<string, string>>;
    }>("cosmjs-absent.mjs");
    const authz = /this chain has no x\/authz: every account signs its own messages/;
    const feegrant = /this chain has no x\/feegrant: who signs pays, so leave fee\.granter/;
    const messages = Object.entries({
      MsgGrant: authz,
      MsgExec: authz,
      MsgRevoke: authz,
      MsgGrantAllowance: feegrant,
      MsgRevokeAllowance: feegrant,
    });
    expect(Object.keys(simulations)).toEqual(messages.map(([name]) => name));
    for (const [name, words] of messages) {
      const { code, codespace, log = "" } = refusals[name] ?? {};
      expect([name, code, codespace]).toEqual([name, 2, "sdk"]);
      expect(log).toMatch(new RegExp(`^.*type URL .*${name}.*${words.source}.*: tx parse error$`));
      expect(simulations[name]).toMatch(words);
    }
    for (const name of ["fee.granter", "fee.payer"]) {
      const log = expect.stringMatching(new RegExp(`leave ${name} empty: feature not supported$`));
      expect([name, refusals[name]]).toEqual([name, { code: 37, codespace: "sdk", log }]);
    }
    expect(Object.keys(queries)).toHaveLength(5);
    for (const [name, text] of Object.entries(queries)) {
      expect(text).toMatch(/^Query failed with \(6\): unknown query path: .*: unknown request$/);
      expect(text).toMatch(name.startsWith("authz") ? authz : feegrant);
    }
    // Status and code are those of the SDK's gateways for routes that they do not have.
    const routes = {
      "cosmos/authz/v1beta1/grants": authz,
      "cosmos/feegrant/v1beta1/allowances/x": feegrant,
      "ibc/apps/transfer/v1/params": /this chain has no x\/ibc: send to accounts of this chain/,
      "cosmos/nothing/v1beta1/params": /^Not Implemented$/,
    };
    for (const [route, words] of Object.entries(routes)) {
      const reply = await fetch(`${node.url("rest")}/${route}`);
      const { message, ...body } = (await reply.json()) as { message: string };
      expect([reply.status, body]).toEqual([501, { code: 12, details: [] }]);
      expect(message).toMatch(/^Not Implemented/);
      expect(message).toMatch(words);
    }
  });

  it("sees its messages fail in blocks with the SDK's codes and words", async () => {
    const { failures: theirs } = JSON.parse(
      fs.readFileSync("test/fixtures/rpc/sdk-failures.json", "utf8"),
    ) as { failures: Readonly<Record<string, readonly [number, string, string]>> };
    const { failures } = await run<{ failures: Told["refusals"] }>("cosmjs-failures.mjs");
    const differing: Record<string, unknown> = {};
    for (const [name, { code, codespace, log }] of Object.entries(failures)) {
      const words = log
        .replace(/^failed to execute message; message index: 0: /, "")
        .replaceAll(/addr(valoper)?1[0-9a-z]+/g, "{address}")
        .replaceAll("atoken", "{denom}");
      const [ownCode, ownSpace, pattern] = OWN_FAILURES[name] ?? theirs[name] ?? [0, "", ""];
      const isRight = typeof pattern === "string" ? words === pattern : pattern.test(words);
      if (code === ownCode && codespace === ownSpace && isRight) continue;
      differing[name] = { own: [code, codespace, words], theirs: theirs[name] };
    }
    expect(differing).toEqual({});
    expect(Object.keys(failures)).toEqual(expect.arrayContaining(Object.keys(theirs)));
  });
});
