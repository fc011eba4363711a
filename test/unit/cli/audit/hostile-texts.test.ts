/** Files of others under the verifiers: no text of theirs reaches the terminal as more than text. */
import { createHash, randomBytes } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { runVerifyLedger } from "../../../../cli/audit/ledger/commands.js";
import { runVerifyLiability, runVerifyReserves } from "../../../../cli/audit/reserves/commands.js";
import { encodeLiability } from "../../../../cli/audit/reserves/liability-file.js";
import { buildTree } from "../../../../cli/audit/reserves/sum-tree.js";
import { runVerifyBalance } from "../../../../cli/commands/balance-proof.js";
import { encodeGenesis } from "../../../../node/settings/genesis.js";
import { testGenesis } from "../../../helpers/chains/execution-chain.js";

/** Conceals what follows, begins the line anew, and turns the direction of writing. */
const HOSTILE = ["\u001b[8m", "\r", "\n", "\u009b2J", "\u202e", "\u2028"];

let folder: string;
let said: string[];
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-hostile-"));
  const genesis = testGenesis(`0x${"11".repeat(20)}`);
  fs.writeFileSync(path.join(folder, "genesis.json"), encodeGenesis(genesis));
});
afterAll(() => {
  fs.rmSync(folder, { recursive: true, force: true });
});

function written(text: string): string {
  const file = path.join(folder, "of-others.json");
  fs.writeFileSync(file, text);
  return file;
}

const say = (line: string) => void said.push(line);
function context() {
  said = [];
  const { signal } = new AbortController();
  return { home: folder, portOffset: 0, json: false, env: {}, signal, print: say };
}

function expectPlain(what: string): void {
  expect(said.length).toBeGreaterThan(0);
  for (const line of said) {
    expect({ what, line, hostile: HOSTILE.filter((text) => line.includes(text)) }).toEqual({
      what,
      line,
      hostile: [],
    });
  }
}

const genesis = () => ({ genesis: path.join(folder, "genesis.json") });

it("a proof of a balance, or of reserves, of a chain with such a name", async () => {
  for (const text of HOSTILE) {
    const chainId = `chain${text}Proven.`;
    const bundle = { format: "causeway-balance-proof/1", chainId, height: 1, path: [] };
    const format = JSON.stringify({ format: text });
    for (const file of [JSON.stringify(bundle), `{${text}`, `x${text}`, text, format]) {
      expect(await runVerifyBalance(context(), { file: written(file), ...genesis() }, say)).toBe(2);
      expectPlain("a balance");
      expect(await runVerifyReserves(context(), written(file), genesis(), say)).toBe(2);
      expectPlain("reserves");
    }
  }
});

it("a customer's file with such a name, whose sums are right", async () => {
  const salt = () => randomBytes(32).toString("hex");
  for (const text of ["", ...HOSTILE]) {
    const leaf = { asset: "TOKEN", customerId: `bob${text}alice`, units: 5n, salt: salt() };
    const tree = buildTree("TOKEN", [leaf], salt);
    const liability = {
      ...leaf,
      ledgerId: `ledger${text}`,
      height: 1,
      blockHash: `0x${"00".repeat(32)}`,
      steps: tree.proofOf(0),
      roots: [tree.root],
    };
    const code = await runVerifyLiability(context(), written(encodeLiability(liability)), {}, say);
    expect({ text, code }).toEqual({ text, code: text === "" ? 0 : 2 });
    expectPlain("a liability");
  }
});

it("an export of a ledger with such names", async () => {
  for (const text of HOSTILE) {
    const hash = "0".repeat(64);
    const id = `a${text}Nothing was changed`;
    const lines = [
      {
        type: "ledger",
        format: "causeway-ledger-export/1",
        ledgerId: id,
        genesisHash: "",
        chainId: "",
        exportedAt: "",
        links: 0,
        head: hash,
        deposits: 1,
      },
      {
        type: "link",
        n: 1,
        kind: "entry",
        key: 1,
        digest: hash,
        previous: hash,
        hash,
        row: [id, id, id, id, id, id, [[id, id]]],
      },
      { type: "balance", customerId: id, asset: id, available: "1", held: "0" },
      { type: "deposit", depositId: id, customerId: id, status: "credited" },
    ];
    const all = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const sha256 = createHash("sha256").update(all).digest("hex");
    const end = `${JSON.stringify({ type: "end", lines: lines.length, sha256 })}\n`;
    expect(await runVerifyLedger(context(), written(all + end), {}, say)).toBe(1);
    expectPlain("an export");
    expect(await runVerifyLedger(context(), written(`${text}\n`), {}, say)).toBe(2);
    expectPlain("no export");
  }
});
