/** Contracts verified by recompiling, over a real node: the form, the API of Etherscan's clients, reading, writing. */
import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import solc from "solc";
import { AbiCoder, Interface, type TransactionReceipt, Wallet } from "ethers";
import { ExplorerStage, openExplorer, rawGet } from "../../helpers/pages/explorer.js";
import { all, parseHtml, textOf } from "../../helpers/pages/html.js";
import { until } from "../../helpers/until.js";

const SOURCE = `// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;
library Doubler { function twice(uint256 x) external pure returns (uint256) { return 2 * x; } }
contract Vault {
  struct Entry { address who; uint256[] amounts; }
  event Stored(address indexed who, Entry entry, string note);
  error TooMuch(uint256 asked, uint256 limit);
  uint256 public immutable limit;
  string public name;
  constructor(uint256 limit_, string memory name_) { limit = limit_; name = name_; }
  function store(Entry calldata entry, string calldata note) external payable {
    emit Stored(msg.sender, entry, note);
  }
  function twice(uint256 asked) external view returns (uint256) {
    if (asked > limit) revert TooMuch(asked, limit);
    return Doubler.twice(asked);
  }
  // </code><script>alert("source")</script> \u200b
}
`;
const HOSTILE = '<script>alert("name")</script>';

interface Output {
  contracts: Record<string, Record<string, { abi: []; evm: { bytecode: { object: string } } }>>;
}

const inputOf = (content: string, libraries: Record<string, string> = {}) => ({
  language: "Solidity",
  sources: { "src/Vault.sol": { content } },
  settings: {
    evmVersion: "cancun",
    optimizer: { enabled: true, runs: 200 },
    libraries: { "src/Vault.sol": libraries },
  },
});

let stage: ExplorerStage;
let wallet: Wallet;
let nonce = 0;
let version: string;
let input: ReturnType<typeof inputOf>;
let face: Interface;
let first: string;
let second: string;
let third: string;
let stored: TransactionReceipt;
let creation: string;

async function mined(fields: {
  to?: string;
  data: string;
  value?: bigint;
}): Promise<TransactionReceipt> {
  const price = { type: 0, gasPrice: 25_000_000n, gasLimit: 3_000_000n };
  const { hash } = await wallet.sendTransaction({ ...price, ...fields, nonce: nonce++ });
  await until(async () => (await stage.provider.getTransactionReceipt(hash)) !== null, {
    timeoutMs: 30_000,
  });
  const receipt = await stage.provider.getTransactionReceipt(hash);
  if (receipt?.status !== 1) throw new Error("a transaction of the scene failed");
  return receipt;
}

beforeAll(async () => {
  version = solc.version();
  const compile = (given: ReturnType<typeof inputOf>): Output => {
    const outputSelection = { "*": { "*": ["abi", "evm.bytecode.object"] } };
    const settings = { ...given.settings, outputSelection };
    return JSON.parse(solc.compile(JSON.stringify({ ...given, settings }))) as Output;
  };
  stage = await ExplorerStage.open(3, {
    CAUSEWAY_EXPLORER_SERVER_PUBLIC_URL: "",
  });
  const key = fs.readFileSync(path.join(stage.home, "config", "faucet.key"), "utf8").trim();
  wallet = new Wallet(key, stage.provider);
  nonce = await wallet.getNonce();
  const library = compile(inputOf(SOURCE)).contracts["src/Vault.sol"]?.["Doubler"];
  const { contractAddress } = await mined({ data: `0x${library?.evm.bytecode.object}` });
  input = inputOf(SOURCE, { Doubler: String(contractAddress) });
  const vault = compile(input).contracts["src/Vault.sol"]?.["Vault"];
  face = new Interface(vault?.abi ?? []);
  const args = AbiCoder.defaultAbiCoder().encode(["uint256", "string"], [21, HOSTILE]).slice(2);
  creation = `0x${vault?.evm.bytecode.object}${args}`;
  [first, second, third] = [
    String((await mined({ data: creation })).contractAddress),
    String((await mined({ data: creation })).contractAddress),
    String((await mined({ data: creation })).contractAddress),
  ];
  const entry = { who: second, amounts: [7, 8] };
  stored = await mined({
    to: first,
    data: face.encodeFunctionData("store", [entry, HOSTILE]),
    value: 5n,
  });
});

afterAll(async () => {
  await stage.close();
});

/** Sends the page's own form, as a browser does. */
async function send(address: string, fields: Record<string, string>, file?: string) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  form.set("file", new Blob([file ?? ""]), file === undefined ? "" : "input.json");
  const reply = await fetch(`${stage.url}/contract/${address}`, {
    method: "POST",
    body: form,
    redirect: "manual",
  });
  expect(reply.status).toBe(303);
  const target = reply.headers.get("location") ?? "";
  let shown = await stage.get(target);
  await until(
    async () => {
      shown = await stage.get(target);
      return !shown.text.includes("being compiled");
    },
    { timeoutMs: 60_000, what: "the verification ends" },
  );
  return textOf(parseHtml(shown.text));
}

async function read(target: string) {
  const reply = await stage.get(target);
  const root = parseHtml(reply.text);
  return { reply, root, text: textOf(all(root, "main")[0] ?? root) };
}

/** Sends a form of names and values. */
function post(target: string, fields: Record<string, string>): Promise<Response> {
  return fetch(`${stage.url}${target}`, { method: "POST", body: new URLSearchParams(fields) });
}

async function api(fields: Record<string, string>, method: "GET" | "POST") {
  const query = new URLSearchParams({ module: "contract", apikey: "none", ...fields });
  const target = `${stage.url}/api`;
  const reply = await (method === "GET"
    ? fetch(`${target}?${query.toString()}`)
    : fetch(target, { method: "POST", body: query }));
  return (await reply.json()) as { status: string; message: string; result: unknown };
}

describe("a contract", () => {
  it("has a form on its account's page, and is verified exactly by an uploaded file", async () => {
    const { root, text } = await read(`/address/${first}`);
    expect(text).toContain("not known here");
    const labels = new Set(all(root, "label").map(({ attributes }) => attributes.get("for")));
    for (const name of ["input", "textarea", "select"]) {
      for (const { attributes } of all(root, name)) {
        expect({ name, id: labels.has(attributes.get("id")) }).toEqual({ name, id: true });
      }
    }
    const answer = await send(first, { name: "Vault", compiler: version }, JSON.stringify(input));
    expect(answer).toContain("Verified.");
    expect(answer).toContain("to the last comment");
    expect((await read(`/address/${first}`)).text).toContain("exact match");
  });

  it("shows sources, settings, what the constructor was given, and nothing of it runs", async () => {
    const { text, reply } = await read(`/contract/${first}`);
    expect(reply.text).not.toContain("<script>alert");
    expect(text).toContain('</code><script>alert("source")</script> \\u{200b}');
    expect(text).toContain("limit_: 21");
    expect(text).toContain(`name_: ${HOSTILE}`);
    expect(text).toContain(`0x${"0".repeat(62)}15`);
    const download = JSON.parse((await stage.get(`/source/${first}`)).text) as { input: unknown };
    expect(download.input).toEqual(input);
    for (const language of ["en", "de"]) {
      const page = await stage.get(`/contract/${first}`, { "accept-language": language });
      expect(parseHtml(page.text).attributes.get("lang")).toBe(language);
    }
  });

  it("stays verified when the explorer is started anew, for its code alone", async () => {
    const stopping = new AbortController();
    const again = await openExplorer(stage.home, stage.offset, stopping.signal, {});
    try {
      const page = await rawGet(again.server.port, `/contract/${first}`);
      expect(page.text).toContain("exact match");
      const other = await rawGet(again.server.port, `/source/${second}`);
      expect(other.status).toBe(404);
    } finally {
      stopping.abort();
      for (const service of again.services.toReversed()) await service.stop();
    }
  });

  it("matches partially where a comment differs, and exactly afterwards", async () => {
    const changed = inputOf(`${SOURCE}// another end\n`, input.settings.libraries["src/Vault.sol"]);
    const fields = { name: "src/Vault.sol:Vault", compiler: version };
    const answer = await send(second, { ...fields, input: JSON.stringify(changed) });
    expect(answer).toContain("The hash of the metadata differs or is missing");
    expect((await read(`/contract/${second}`)).text).toContain("partial match");
    await send(second, { ...fields, input: JSON.stringify(input) });
    expect((await read(`/contract/${second}`)).text).toContain("exact match");
    const late = await send(second, { ...fields, input: JSON.stringify(changed) });
    expect(late).toContain("verified already");
  });

  it("has nothing among its sources that it is not made of", async () => {
    const fourth = String((await mined({ data: creation })).contractAddress);
    // Compiled with the others, and in no code: any text could be in it.
    const praise = {
      "src/Audited.sol": { content: "contract Audited {} // audited, all is well" },
    };
    const sent = { ...input, sources: { ...praise, ...input.sources } };
    const fields = { name: "Vault", compiler: version };
    expect(await send(fourth, { ...fields, input: JSON.stringify(sent) })).toContain("Verified.");
    const { text } = await read(`/contract/${fourth}`);
    expect(text).toContain("exact match");
    expect(text).toContain("library Doubler");
    expect(text).not.toContain("all is well");
    const download = JSON.parse((await stage.get(`/source/${fourth}`)).text) as object;
    expect(download).toMatchObject({ input, parts: ["src/Vault.sol"] });
    const about = { action: "getsourcecode", address: fourth };
    const told = (await api(about, "GET")).result as { SourceCode: string }[];
    expect(JSON.parse(String(told[0]?.SourceCode).slice(1, -1))).toEqual(input);
    expect((await read(`/contract/${first}`)).text).not.toContain("Sent along");
  });

  it("is refused with the reason: other code, errors, names, compilers, accounts", async () => {
    const fields = { name: "Vault", compiler: version };
    const other = inputOf(
      SOURCE.replace("2 * x", "3 * x").replace("asked > limit", "asked >= limit"),
    );
    const text = (given: unknown) => JSON.stringify(given);
    expect(await send(third, { ...fields, input: text(other) })).toMatch(
      /first difference at byte/,
    );
    const broken = inputOf(`contract Vault { ${HOSTILE} }`);
    expect(await send(third, { ...fields, input: text(broken) })).toContain("ParserError");
    expect(await send(third, { ...fields, name: "Valt", input: text(input) })).toContain(
      "No source has a contract of this name",
    );
    expect(await send(third, { ...fields, compiler: "v0.4.1", input: text(input) })).toContain(
      "no such compiler",
    );
    expect(await send(third, { ...fields, input: "<svg onload=alert(1)>" })).toContain(
      "not standard JSON",
    );
    const wrong = { ...fields, arguments: "00", input: text(input) };
    expect(await send(third, wrong)).toContain("given other arguments");
    expect((await stage.get(`/contract/${wallet.address}`)).status).toBe(404);
    expect((await stage.get("/contract/x")).status).toBe(400);
    expect((await stage.get("/verification/x")).status).toBe(404);
  });
});

describe("the API of Etherscan's clients", () => {
  it("takes a contract, tells how it goes, and gives it back", async () => {
    const about = { action: "getsourcecode", address: third };
    const before = (await api(about, "GET")).result as { SourceCode: string }[];
    expect(before[0]?.SourceCode).toBe("");
    const args = AbiCoder.defaultAbiCoder().encode(["uint256", "string"], [21, HOSTILE]).slice(2);
    const [release] = version.split(".Emscripten");
    const fields = {
      action: "verifysourcecode",
      contractaddress: third,
      sourceCode: JSON.stringify(input),
      codeformat: "solidity-standard-json-input",
      contractname: "src/Vault.sol:Vault",
      compilerversion: `v${release}`,
      constructorArguements: args,
    };
    const taken = await api(fields, "POST");
    expect(taken).toMatchObject({ status: "1", message: "OK" });
    const guid = String(taken.result);
    let last: { status: string; result: unknown } = taken;
    await until(
      async () => {
        last = await api({ action: "checkverifystatus", guid }, "GET");
        return last.result !== "Pending in queue";
      },
      { timeoutMs: 60_000, what: "the verification ends" },
    );
    expect(last).toMatchObject({ status: "1", result: "Pass - Verified" });
    const after = (await api(about, "GET")).result as Record<string, string>[];
    expect(JSON.parse(String(after[0]?.["SourceCode"]).slice(1, -1))).toEqual(input);
    expect(after[0]).toMatchObject({
      ContractName: "Vault",
      CompilerVersion: `v${release}`,
      ConstructorArguments: args,
      Runs: "200",
    });
    const abi = await api({ action: "getabi", address: third }, "GET");
    expect(new Interface(String(abi.result)).format()).toEqual(face.format());
    expect((await api(fields, "POST")).result).toBe("Contract source code already verified");
  });

  it("refuses in Etherscan's words", async () => {
    const fields = { action: "verifysourcecode", codeformat: "solidity-standard-json-input" };
    const refused = async (given: Record<string, string>) =>
      (await api({ ...fields, ...given }, "POST")).result;
    expect(await refused({ contractaddress: wallet.address })).toMatch(
      /^Unable to locate ContractCode at/,
    );
    expect(await refused({ contractaddress: "x" })).toBe("Invalid contractaddress");
    expect(await refused({ contractaddress: first, codeformat: "solidity-single-file" })).toMatch(
      /codeformat/,
    );
    expect((await api({ action: "checkverifystatus", guid: "x" }, "GET")).result).toMatch(
      /^Fail - Unable to verify/,
    );
    expect((await api({ action: "nothing" }, "GET")).status).toBe("0");
  });
});

describe("reading and writing", () => {
  it("calls views on the server, and shows what a call was refused with by its own error", async () => {
    const { text, reply } = await read(`/read/${first}`);
    expect(text).toMatch(/limit\(\) → uint256.*21/s);
    expect(text).toContain(HOSTILE);
    expect(reply.text).not.toContain("<script>alert");
    const selector = face.getFunction("twice")?.selector ?? "";
    const asked = async (value: string) =>
      (await post(`/read/${first}`, { f: selector, a0: value })).text();
    expect(textOf(parseHtml(await asked("21")))).toContain("42");
    const refused = textOf(parseHtml(await asked("22")));
    expect(refused).toContain("TooMuch");
    expect(refused).toContain("asked: 22");
    const odd = await post(`/read/${first}`, { f: selector, a0: '"><script>' });
    expect(odd.status).toBe(400);
    expect(await odd.text()).not.toContain('"><script>');
    expect((await post(`/read/${first}`, { f: "0x00000000" })).status).toBe(400);
    expect((await stage.get(`/read/${wallet.address}`)).status).toBe(404);
  });

  it("makes the bytes to sign, and the command that sends them", async () => {
    const selector = face.getFunction("store")?.selector ?? "";
    const entry = { who: second, amounts: [1, 2] };
    const data = face.encodeFunctionData("store", [entry, "note"]);
    const reply = await post(`/write/${first}`, {
      f: selector,
      a0: JSON.stringify(entry),
      a1: "note",
      value: "1.5",
    });
    expect(reply.headers.get("cache-control")).toBe("no-store");
    const root = parseHtml(await reply.text());
    const text = textOf(root);
    expect(text).toContain(data);
    expect(text).toContain(`--value 1500000000000000000wei ${first} ${data}`);
    // The node of this kit, whatever answers at the usual port.
    expect(text).toContain(`--rpc-url http://127.0.0.1:${8545 + stage.offset} --chain 6940`);
    const wallets = all(root, "div").filter(({ attributes }) => attributes.has("data-wallet"));
    expect(wallets[0]?.attributes.get("data-data")).toBe(data);
    const wrong = await post(`/write/${first}`, { f: selector, a0: "{}", a1: "", value: "x" });
    expect(wrong.status).toBe(400);
  });

  it("shows transactions of a verified contract by its own ABI", async () => {
    const { text } = await read(`/tx/${stored.hash}`);
    expect(text).toContain("store (read by the contract's verified ABI)");
    expect(text).toContain("Stored (read by the contract's verified ABI)");
    expect(text).toContain("amounts: [7, 8]");
    expect(text).toContain(`note: ${HOSTILE}`);
  });
});

describe("forms", () => {
  it("are bounded, and taken by pages that have one alone", async () => {
    const large = await fetch(`${stage.url}/contract/${first}`, {
      method: "POST",
      body: new URLSearchParams({ input: "x".repeat(9 * 1024 * 1024) }),
    }).catch((error: unknown) => error);
    // The server may close the connection while the rest is still being sent.
    if (large instanceof Response) expect(large.status).toBe(413);
    for (const [target, type, status] of [
      ["/", "application/x-www-form-urlencoded", 405],
      [`/contract/${first}`, "application/json", 400],
      [`/contract/${first}`, "multipart/form-data; boundary=x", 400],
    ] as const) {
      const reply = await fetch(`${stage.url}${target}`, {
        method: "POST",
        body: "a=b",
        headers: { "content-type": type },
      });
      expect({ target, type, status: reply.status }).toEqual({ target, type, status });
    }
  });

  it("wait in a short queue, beyond which they are refused", async () => {
    const fields = { name: "Nobody", compiler: version, input: JSON.stringify(input) };
    const replies = await Promise.all(
      Array.from({ length: 14 }, async () => {
        const body = new URLSearchParams(fields);
        const target = `${stage.url}/contract/${first}`;
        return (await fetch(target, { method: "POST", body, redirect: "manual" })).status;
      }),
    );
    expect(new Set(replies)).toEqual(new Set([303, 503]));
    expect((await stage.get("/health")).status).toBe(200);
  });
});
