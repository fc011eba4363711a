import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { AbiCoder, id } from "ethers";
import { ZERO_HASH } from "../../../../chain/hex.js";
import { parseTokenList } from "../../../../chain/token-list.js";
import { sentenceOf } from "../../../../cli/errors.js";
import { createProgram } from "../../../../cli/program/program.js";
import {
  type FakeNode,
  type Method,
  RpcFault,
  startFakeNode,
} from "../../../helpers/chains/fake-node.js";
import { GOLD, SILVER } from "../../../helpers/chains/known-tokens.js";

const GOLD_ADDRESS = GOLD.metadata.contractAddress;
const SILVER_ADDRESS = SILVER.metadata.contractAddress;

let home: string;
let printed: string[];
let exitCode: number | undefined;
let env: Record<string, string> = {};

const file = () => join(home, "config", "tokens.json");
const listed = () => parseTokenList(readFileSync(file(), "utf8"));

/** Runs `causeway tokens ...` on the home; a fault is what the command throws. */
async function tokens(...words: string[]): Promise<void> {
  printed = [];
  exitCode = undefined;
  const program = createProgram({
    version: "0",
    env,
    signal: new AbortController().signal,
    print: (line) => void printed.push(line),
    warn: () => undefined,
    setExitCode: (code) => {
      exitCode = code;
    },
  });
  await program.parseAsync(["node", "causeway", "tokens", ...words, "--home", home]);
}

const add = (address: string, symbol: string, decimals: string, ...more: string[]) =>
  tokens("add", "--address", address, "--symbol", symbol, "--decimals", decimals, ...more);

const json = () => JSON.parse(printed.join("\n"));

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "causeway-cli-tokens-"));
  mkdirSync(join(home, "config"));
  writeFileSync(file(), "[]\n");
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

describe("causeway tokens add", () => {
  it("writes the checksummed address, keeps what was there, and says when it counts", async () => {
    await add(GOLD_ADDRESS.toLowerCase(), "GOLD", "6");
    // Behind the restart nobody can correct the line any more.
    const next = expect.stringMatching(/restart the kit.*causeway tokens check.*for ever/i);
    expect([exitCode, printed.join(" ")]).toEqual([0, next]);
    await add(SILVER_ADDRESS, "SILVER", "18", "--json");
    expect(readFileSync(file(), "utf8")).toContain(`"contractAddress":"${GOLD_ADDRESS}"`);
    expect(listed().map(({ symbol, decimals }) => [symbol, decimals])).toEqual([
      ["GOLD", 6],
      ["SILVER", 18],
    ]);
    const silver = { contractAddress: SILVER_ADDRESS, symbol: "SILVER", decimals: 18 };
    expect(json()).toMatchObject({ schemaVersion: 1, added: silver, restart: true });
    // Neither a temporary file nor a lock stays behind.
    expect(readdirSync(join(home, "config"))).toEqual(["tokens.json"]);
  });

  it.each([
    ["a wrong checksum", GOLD_ADDRESS.replace("d0F", "D0F"), "GOLD", "6", "--address"],
    ["a short address", "0x12", "GOLD", "6", "--address"],
    ["the native token's name", GOLD_ADDRESS, "TOKEN", "6", "--symbol"],
    ["a symbol with a space", GOLD_ADDRESS, "GO LD", "6", "--symbol"],
    ["decimals above 255", GOLD_ADDRESS, "GOLD", "256", "--decimals"],
    ["decimals that are no number", GOLD_ADDRESS, "GOLD", "six", "--decimals"],
    ["negative decimals", GOLD_ADDRESS, "GOLD", "-1", "--decimals"],
  ])("refuses %s and names the flag", async (_name, address, symbol, decimals, flag) => {
    await expect(add(address, symbol, decimals)).rejects.toMatchObject({
      code: "USAGE",
      message: expect.stringContaining(`${flag} is `),
    });
    expect(readFileSync(file(), "utf8")).toBe("[]\n");
  });

  it("refuses a contract that is listed, in whatever case, and changes nothing", async () => {
    await add(GOLD_ADDRESS, "GOLD", "6");
    const before = readFileSync(file(), "utf8");
    await expect(add(GOLD_ADDRESS.toLowerCase(), "AU", "8")).rejects.toMatchObject({
      code: "USAGE",
      message:
        `${GOLD_ADDRESS} is listed already, as GOLD with 6 decimals. A line that no kit was started ` +
        `with yet is corrected in ${file()}; later it stays as it is.`,
    });
    expect(readFileSync(file(), "utf8")).toBe(before);
  });

  it("refuses a name that is taken, or that no asset can have", async () => {
    await add(GOLD_ADDRESS, "USD", "6");
    const before = readFileSync(file(), "utf8");
    for (const symbol of ["USD", "US$"]) {
      await expect(add(SILVER_ADDRESS, symbol, "6")).rejects.toMatchObject({ code: "USAGE" });
    }
    expect(readFileSync(file(), "utf8")).toBe(before);
  });

  it("loses none of several that are added at once", async () => {
    const addresses = Array.from({ length: 6 }, (_, index) => `0x${`${index}`.repeat(40)}`);
    const outcomes = await Promise.allSettled(
      addresses.map((address, index) => add(address, `X${index}`, "1")),
    );
    const added = outcomes.filter(({ status }) => status === "fulfilled").length;
    expect(added).toBeGreaterThan(0);
    expect(listed()).toHaveLength(added);
  });

  it("refuses to build on a file that is wrong or missing", async () => {
    writeFileSync(file(), '[{"symbol":"GOLD"}]');
    await expect(add(SILVER_ADDRESS, "SILVER", "18")).rejects.toMatchObject({
      code: "HOME_INCOMPLETE",
      message: expect.stringContaining("[0].contractAddress"),
    });
    expect(readFileSync(file(), "utf8")).toBe('[{"symbol":"GOLD"}]');
    rmSync(file());
    await expect(tokens("list")).rejects.toMatchObject({
      code: "HOME_INCOMPLETE",
      message: expect.stringContaining("causeway init"),
    });
  });
});

describe("causeway tokens list", () => {
  it("prints the tokens in their order, for people and for programs", async () => {
    await tokens("list");
    expect([exitCode, printed[0]]).toEqual([0, expect.stringContaining("No token is listed")]);
    await add(GOLD_ADDRESS, "GOLD", "6");
    await tokens("list");
    expect(printed).toEqual([`  ${GOLD_ADDRESS}  GOLD  6 decimals`]);
    await tokens("list", "--json");
    expect(json()).toEqual({
      schemaVersion: 1,
      tokens: [{ contractAddress: GOLD_ADDRESS, symbol: "GOLD", decimals: 6 }],
    });
  });

  it("names the list where a folder has its name", async () => {
    rmSync(file());
    mkdirSync(file());
    const said = await tokens("list").catch((error: unknown) => sentenceOf(error));
    expect(said).toBe(`Cannot use ${file()}: it is a folder and has to be a file.`);
  });
});

describe("causeway tokens check", () => {
  const coder = AbiCoder.defaultAbiCoder();
  const text = (value: string) => coder.encode(["string"], [value]);
  const number = (value: bigint) => coder.encode(["uint256"], [value]);
  const views: Record<string, string> = {
    "0x95d89b41": text("GOLD"),
    "0x313ce567": number(6n),
    "0x18160ddd": number(10n ** 30n),
  };

  let node: FakeNode;
  let sidecar: Server;
  let standing: { status: number; body: Record<string, unknown> };

  beforeAll(async () => {
    node = await startFakeNode({
      eth_getCode: () => "0x60",
      eth_call: answerOf(views),
      eth_blockNumber: () => "0x384",
    });
    sidecar = createServer((_request, response) => {
      response.statusCode = standing.status;
      response.end(JSON.stringify(standing.body));
    });
    await new Promise<void>((resolve) => sidecar.listen(0, "127.0.0.1", resolve));
    const { port } = sidecar.address() as AddressInfo;
    env = {
      CAUSEWAY_APP_JSON_RPC_ADDRESS: new URL(node.url).host,
      CAUSEWAY_SIDECAR_ONLINE_LISTEN: `127.0.0.1:${port}`,
    };
  });

  beforeEach(async () => {
    node.reset();
    standing = judged(900);
    await add(GOLD_ADDRESS, "GOLD", "6");
  });

  afterAll(async () => {
    env = {};
    await node.close();
    sidecar.close();
    sidecar.closeAllConnections();
  });

  const contract = (changes: Record<string, string>) =>
    node.methods.set("eth_call", answerOf({ ...views, ...changes }));

  const ZEPPELIN = id("org.zeppelinos.proxy.implementation");

  /** What the contract runs, and stores. */
  const delegating = (stored: Method, code = "3660008037600080366000545af4") => {
    node.methods.set("eth_getCode", () => `0x${code}`);
    node.methods.set("eth_getStorageAt", stored);
  };

  it("is content where contract, list and sidecar agree", async () => {
    await tokens("check");
    expect([exitCode, printed]).toEqual([0, [`  OK    ${GOLD_ADDRESS}  GOLD  6 decimals`]]);
    await tokens("check", "--json");
    expect(json()).toEqual({
      schemaVersion: 1,
      ok: true,
      tokens: [
        {
          contractAddress: GOLD_ADDRESS,
          symbol: "GOLD",
          decimals: 6,
          verdict: "ok",
          remarks: [],
          contract: {
            hasCode: true,
            symbol: "GOLD",
            decimals: 6,
            totalSupply: "1".padEnd(31, "0"),
          },
          sidecar: { state: "followed", judgedTo: 900 },
        },
      ],
    });
  });

  it("is content with a proxy that is known, and with code that is its own", async () => {
    const metadata = `a2646970667358221220${"f4".repeat(32)}64736f6c634300081c0033`;
    for (const arrange of [
      () => delegating(([, slot]) => (slot === ZEPPELIN ? `0x${"11".repeat(32)}` : ZERO_HASH)),
      // A clone of one contract for ever, EIP-1167.
      () =>
        delegating(
          () => ZERO_HASH,
          `363d3d373d3d3d363d73${"11".repeat(20)}5af43d82803e903d91602b57fd5bf3`,
        ),
      // As data, and as what the compiler appends.
      () => delegating(() => ZERO_HASH, `60f461f4f400${metadata}`),
    ]) {
      arrange();
      await tokens("check");
      expect(printed).toEqual([`  OK    ${GOLD_ADDRESS}  GOLD  6 decimals`]);
    }
  });

  it("reads a symbol of bytes32, and escapes what could play with the terminal", async () => {
    contract({ "0x95d89b41": `0x${Buffer.from("GOLD").toString("hex").padEnd(64, "0")}` });
    await tokens("check");
    expect(exitCode).toBe(0);
    expect(printed).toHaveLength(1);
    contract({ "0x95d89b41": text("G\u001b[2J\u202eDLO") });
    await tokens("check");
    expect([exitCode, printed[1]]).toEqual([
      0,
      '        -> the contract calls itself "G\\u{fffd}[2J\\u{fffd}DLO"',
    ]);
  });

  it.each<[string, () => unknown, number, string]>([
    ["other decimals", () => contract({ "0x313ce567": number(18n) }), 1, "has 18 decimals"],
    ["no total supply", () => contract({ "0x18160ddd": "0x" }), 1, "no ERC-20"],
    ["no decimals", () => contract({ "0x313ce567": number(256n) }), 0, "does not tell"],
    [
      "a symbol cut short",
      () => contract({ "0x95d89b41": text("GOLD").slice(0, -62) }),
      0,
      "nothing",
    ],
    ["no contract yet", () => node.methods.set("eth_getCode", () => "0x"), 0, "no contract"],
    [
      "a proxy that keeps its implementation where nobody looks",
      () => delegating(() => ZERO_HASH),
      0,
      "nobody sees that change",
    ],
    ["calls that revert", () => node.methods.set("eth_call", reverting), 1, "no ERC-20"],
    [
      "a quarantine",
      () =>
        answerCall(200, {
          result: { quarantined: true, quarantined_from_index: 7, reason: "logs lie" },
        }),
      1,
      'from block 7 on: "logs lie"',
    ],
    [
      "a sidecar that has most of the chain still to read",
      () => {
        standing = judged(883);
      },
      0,
      "has read up to block 883 of 900",
    ],
    ["a sidecar with an older list", () => answerCall(500, { code: 208 }), 0, "restart the kit"],
    ["a sidecar that does not tell", () => answerCall(500, { code: 4 }), 0, "does not tell"],
    ["a sidecar that talks nonsense", () => answerCall(200, {}), 0, "does not tell"],
  ])("tells %s", async (_name, arrange, code, remark) => {
    arrange();
    await tokens("check");
    expect([exitCode, printed.join("\n")]).toEqual([code, expect.stringContaining(remark)]);
    expect(printed[0]).toMatch(code === 0 ? /^ {2}WARN / : /^ {2}FAIL /);
  });

  it("takes a sidecar that keeps up, or does not say how far it is, as it did", async () => {
    for (const answer of [judged(884), { status: 200, body: { result: { quarantined: false } } }]) {
      standing = answer;
      await tokens("check");
      expect(printed).toEqual([`  OK    ${GOLD_ADDRESS}  GOLD  6 decimals`]);
    }
  });

  it("fails where the node is away", async () => {
    const reachable = env;
    env = { ...reachable, CAUSEWAY_APP_JSON_RPC_ADDRESS: "127.0.0.1:1" };
    await expect(tokens("check")).rejects.toMatchObject({ code: "NODE_UNREACHABLE" });
    env = reachable;
  });

  function judged(to: number): typeof standing {
    return { status: 200, body: { result: { quarantined: false, judged_to_index: to } } };
  }

  function answerCall(status: number, body: Record<string, unknown>): void {
    standing = { status, body };
  }
});

/** `eth_call` by selector. */
function answerOf(views: Record<string, string>): Method {
  return ([message]) => views[(message as { data: string }).data.slice(0, 10)];
}

function reverting(): never {
  throw new RpcFault(3, "execution reverted");
}
