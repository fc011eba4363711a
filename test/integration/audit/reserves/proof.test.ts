/**
 * Reserves against liabilities: proofs over a real chain, liabilities of a real ledger, and whatever
 * is changed in the files is refused.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { verifyMessage } from "ethers";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { hexToBytes, parseHash32 } from "../../../../chain/hex.js";
import { runAuditReserves } from "../../../../cli/audit/reserves/commands.js";
import type { MadeReserves } from "../../../../cli/audit/reserves/make-reserves.js";
import { parseReserves } from "../../../../cli/audit/reserves/read-reserves.js";
import {
  encodeReserves,
  type ReservesContents,
} from "../../../../cli/audit/reserves/reserves-file.js";
import { StateNodes } from "../../../../cli/audit/reserves/state-nodes.js";
import { verifyReserves } from "../../../../cli/audit/reserves/verify-reserves.js";
import { writeReserves } from "../../../../cli/audit/reserves/write-reserves.js";
import { SUSPENSE_HOLDER } from "../../../../ledger/journal/accounts.js";
import { readLiabilities } from "../../../../ledger/books/liabilities.js";
import type { Genesis } from "../../../../node/settings/genesis.js";
import type { CometTestChain } from "../../../helpers/chains/comet-chain.js";
import { openTestLedger, type TestLedger } from "../../../helpers/services/ledger.js";
import {
  added,
  DEPOSITS,
  HEIGHT,
  HOT,
  keys,
  PAID,
  ReservesStage,
  textOf,
  wallet,
} from "./stage.js";

const { signal } = new AbortController();

let stage: ReservesStage;
let chain: CometTestChain;
let genesis: Genesis;
let ledger: TestLedger;
let folder: string;
let made: MadeReserves;

beforeAll(async () => {
  stage = await ReservesStage.open();
  ({ chain, genesis, ledger, folder } = stage);
  made = await stage.make();
});
afterAll(() => stage?.close());

describe("liabilities", () => {
  it("are those of no block where nothing is booked", async () => {
    const empty = await openTestLedger();
    try {
      const read = readLiabilities(empty.owner, { height: undefined });
      await expect(read).rejects.toMatchObject({ code: "HEIGHT_NOT_BOOKED" });
    } finally {
      await empty.drop();
    }
  });

  it("are what is owed as of a block, on its way or in suspense included", async () => {
    const { liabilities, addresses } = await readLiabilities(ledger.owner, {
      height: HEIGHT,
    });
    expect(liabilities).toEqual([
      { asset: "TOKEN", customerId: "alice", units: 700n },
      { asset: "TOKEN", customerId: "bob", units: 205n },
      { asset: "TOKEN", customerId: SUSPENSE_HOLDER, units: 30n },
    ]);
    expect(addresses).toEqual([
      { address: HOT, role: "hot-wallet" },
      { address: DEPOSITS, role: "deposit-address" },
    ]);
    await expect(readLiabilities(ledger.owner, { height: 6 })).rejects.toMatchObject({
      code: "HEIGHT_NOT_BOOKED",
    });
  });
});

describe("the files of a proof of reserves", () => {
  it("are there with those of the customers, or not at all", async () => {
    const customers = join(folder, "customers");
    const out = join(folder, "published.json");
    await writeReserves(made, { out, customers }, { signal });
    const names = ["TOKEN-alice.json", "TOKEN-bob.json", "TOKEN-causeway%3Asuspense.json"];
    expect(readdirSync(customers).toSorted()).toEqual(names);
    const files = new Map(names.map((name) => [name, readFileSync(join(customers, name), "utf8")]));
    // Another month, the same folder, or the same file: what the customers have is of this one.
    const again = await stage.make();
    const next = join(folder, "next.json");
    for (const options of [
      { out: next, customers },
      { out, customers: join(folder, "others") },
    ]) {
      await expect(writeReserves(again, options, { signal })).rejects.toMatchObject({
        code: "BAD_OPTION",
        message: expect.stringContaining("is there already"),
      });
    }
    rmSync(join(customers, "TOKEN-alice.json"));
    await expect(writeReserves(again, { out: next, customers }, { signal })).rejects.toThrow("bob");
    expect(existsSync(next)).toBe(false);
    expect(existsSync(join(folder, "others"))).toBe(false);
    // No file of the run that failed is among them.
    expect(readdirSync(customers).toSorted()).toEqual(names.slice(1));
    for (const name of names.slice(1)) {
      expect(readFileSync(join(customers, name), "utf8")).toBe(files.get(name));
    }
    const missing = join(folder, "no-folder", "published.json");
    const nowhere = writeReserves(
      again,
      { out: missing, customers: join(folder, "others") },
      { signal },
    );
    await expect(nowhere).rejects.toMatchObject({ code: "HOME_UNUSABLE" });
    expect(readdirSync(join(folder, "others"))).toEqual([]);
  });
});

it("is refused before anything is looked at where its file is there already", async () => {
  const out = join(folder, "of-last-month.json");
  writeFileSync(out, "somebody's");
  const said: string[] = [];
  // A home without genesis, keys and ledger.
  const context = { home: folder, portOffset: 0, json: false, env: {}, signal };
  const print = (line: string) => void said.push(line);
  expect(await runAuditReserves({ ...context, print }, { out, height: "1" }, print)).toBe(2);
  expect(said.join()).toContain(`${out} is there already`);
});

describe("a proof of reserves", () => {
  it("proves every account at one block, and what is owed", async () => {
    const proven = await stage.verify(made.contents);
    const view = chain.chain.view;
    expect(proven).toMatchObject({ accounts: 2, wallets: 1, owedAtoken: 935n, isCovered: true });
    expect(proven.block.blockHash).toBe(view.block(HEIGHT)?.block.hash);
    const states = await Promise.all(
      [HOT, DEPOSITS].map((address) => view.proof(address, [], HEIGHT, signal)),
    );
    const held = states.map(({ account }) => account.balanceAtoken);
    expect(held[1]).toBe(PAID);
    expect(proven.reservesAtoken).toBe(held.reduce((sum, units) => sum + units, 0n));
    expect(proven.signedAtoken).toBe(held[0]);
    const [signature] = made.contents.signatures;
    const listed = [`${DEPOSITS} deposit-address`, `${HOT} hot-wallet`].toSorted();
    const accounts = ["causeway-reserves-accounts/1", ...listed].join("\n");
    const text = [
      "causeway-reserves/3: we hold the keys of these accounts, and owe what this root stands for.",
      `chain: ${genesis.cosmosChainId}`,
      `height: ${HEIGHT}`,
      `block: ${proven.block.blockHash}`,
      `ledger: ${made.contents.ledgerId}`,
      `accounts: 2, ${createHash("sha256").update(accounts).digest("hex")}`,
      `liabilities: ${proven.liabilitiesRoot}`,
      "nonce: auditor 7",
    ].join("\n");
    expect(verifyMessage(text, signature?.signature ?? "")).toBe(wallet.address);
  });

  it("is not made of books of another chain, nor of blocks that the node has not", async () => {
    const blockHash = parseHash32(`0x${"ab".repeat(32)}`);
    for (const height of [HEIGHT, HEIGHT + 2]) {
      const booked = { height, blockHash };
      await expect(stage.make(keys, [], { booked })).rejects.toMatchObject({ code: "OTHER_CHAIN" });
    }
    const booked = { height: HEIGHT + 3, blockHash };
    await expect(stage.make(keys, [], { booked })).rejects.toMatchObject({ code: "BAD_RANGE" });
  });

  it("is refused with anything changed", async () => {
    const good = made.contents;
    const [hot, deposits] = good.accounts;
    const [root] = good.liabilities;
    if (hot === undefined || deposits === undefined || root === undefined) throw new Error("parts");
    const changed: readonly ReservesContents[] = [
      { ...good, accounts: [hot, hot] },
      ...[...good.nodes.values()].map((left) => ({ ...good, nodes: without(good.nodes, left) })),
      { ...good, nodes: new StateNodes() },
      { ...good, liabilities: [{ ...root, sumUnits: 1n }] },
      { ...good, liabilities: [] },
      { ...good, nonce: "auditor 8" },
      { ...good, height: HEIGHT - 1 },
      { ...good, signatures: [] },
      { ...good, signatures: [{ address: HOT, signature: `0x${"00".repeat(65)}` }] },
      { ...good, accounts: [hot, { ...deposits, role: "hot-wallet" }] },
      { ...good, chainId: "chain_1-1" },
      { ...good, accounts: [hot] },
      { ...good, ledgerId: "another ledger" },
    ];
    for (const contents of changed) {
      await expect(stage.verify(contents)).rejects.toMatchObject({ code: "NOT_PROVEN" });
    }
  });

  it("is refused with coins that no key can move, whoever signs for them", async () => {
    const { params } = genesis;
    const { accounts, nodes } = made.contents;
    const contentsWith = async (address: Address) => {
      const more = new StateNodes();
      for (const node of nodes.values()) more.add(node);
      const { accountProof } = await chain.chain.view.proof(address, [], HEIGHT, signal);
      for (const node of accountProof) more.add(hexToBytes(node));
      const all = [...accounts, { address, role: "deposit-address" as const }];
      return { ...made.contents, nodes: more, accounts: all };
    };
    for (const address of [
      params.feeCollector,
      params.treasury,
      params.validatorsPool,
      params.developmentFund,
      params.burnAddress,
      ...["0", "1", "100", "801", "8ff"].map((end) => parseAddress(`0x${end.padStart(40, "0")}`)),
    ]) {
      const contents = await contentsWith(address);
      await expect(stage.verify(contents)).rejects.toThrow("no key can move");
    }
    // It has code: to a genesis that does not name it, it is a contract as any other.
    const contents = await contentsWith(params.feeCollector);
    const unnamed = { ...genesis, params: { ...params, feeCollector: params.treasury } };
    const read = await parseReserves(encodeReserves(contents));
    await expect(verifyReserves(read, unnamed)).rejects.toThrow("is a contract");
  });

  it("is refused with an account that nobody signed for, whose coins are there", async () => {
    const stranger = { address: parseAddress(added.address), role: "deposit-address" } as const;
    const { accounts } = (await stage.make(keys, [stranger])).contents;
    expect(accounts).toHaveLength(3);
    await expect(stage.verify({ ...made.contents, accounts })).rejects.toMatchObject({
      code: "NOT_PROVEN",
    });
  });
});

function without(nodes: StateNodes, left: Uint8Array): StateNodes {
  const others = new StateNodes();
  for (const node of nodes.values()) if (node !== left) others.add(node);
  return others;
}

describe("the lines of the file", () => {
  it("are a head, each node once, and the accounts", () => {
    const [head = "", ...lines] = textOf(made.contents).trimEnd().split("\n");
    const { format, nodes, accounts } = JSON.parse(head);
    expect({ format, accounts }).toEqual({ format: "causeway-reserves/3", accounts: 2 });
    expect(lines).toHaveLength(nodes + accounts);
    expect(new Set(lines).size).toBe(lines.length);
    // Both ways begin at the root.
    const { nodes: kept } = made.contents;
    expect(nodes).toBeLessThan(2 * kept.wayTo(HOT, stateRoot()).length);
  });

  it("are all there, and nothing behind them", async () => {
    const text = textOf(made.contents);
    const lines = text.split(/(?<=\n)/);
    const swapped = [lines[0], lines.at(-1), ...lines.slice(1, -1)].join("");
    for (const [changed, says] of [
      [lines.slice(0, -1).join(""), `line ${lines.length - 1}: it breaks off`],
      [lines[0] ?? "", "it breaks off"],
      [`${text}"0x"\n`, "lines behind its end"],
      [text.replace('"accounts":2', '"accounts":3'), "it breaks off"],
      [text.replace('"accounts":2', '"accounts":1'), "lines behind its end"],
      [text.replace('"accounts":2', '"accounts":2000001'), "accounts: "],
      [swapped, "line 2: "],
      [text.replace("causeway-reserves/3", "causeway-reserves/4"), "format: "],
      ["", "JSON"],
      [text.slice(0, 100), "JSON"],
    ] as const) {
      await expect(stage.verifyText(changed)).rejects.toMatchObject({
        code: "BUNDLE_UNREADABLE",
        message: expect.stringContaining(says),
      });
    }
    expect(await stage.verifyText(text.replaceAll("\n", "\r\n"))).toMatchObject({ accounts: 2 });
  });
});

function stateRoot() {
  const block = chain.chain.view.block(HEIGHT);
  if (block === undefined) throw new Error("no block");
  return block.block.header.stateRoot;
}

describe("a proof of reserves of a former release", () => {
  it.each([
    ["causeway-reserves/1", false],
    ["causeway-reserves/2", true],
  ] as const)("is read still: %s", async (format, areAccountsSigned) => {
    const text = await stage.formerText(made.contents, format);
    const held = { accounts: 2, wallets: 1, isCovered: true, areAccountsSigned };
    expect(await stage.verifyText(text)).toMatchObject(held);
    // As programs write it that know no lines.
    expect(await stage.verifyText(JSON.stringify(JSON.parse(text)))).toMatchObject(held);
    // It is no proof of another form by its name.
    const other = format === "causeway-reserves/1" ? "causeway-reserves/2" : "causeway-reserves/1";
    await expect(stage.verifyText(text.replace(format, other))).rejects.toMatchObject({
      code: "NOT_PROVEN",
    });
  });

  it("proves nothing without an account's proof", async () => {
    const document = JSON.parse(await stage.formerText(made.contents, "causeway-reserves/2"));
    for (const account of document.accounts) account.accountProof = [];
    await expect(stage.verifyText(JSON.stringify(document))).rejects.toMatchObject({
      code: "NOT_PROVEN",
    });
  });
});
