/**
 * Proofs of reserves whose wallets sign elsewhere, as in an HSM or with Web3Signer: drafts, and what becomes of
 * them when somebody brings signatures. Those are ethers' own.
 */
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { hashMessage, hexlify, Signature, SigningKey, toUtf8Bytes, Wallet } from "ethers";
import { parseAddress, toBech32, toChecksumAddress } from "../../../../chain/address.js";
import {
  runSignReserves,
  runVerifyLiability,
  runVerifyReserves,
} from "../../../../cli/audit/reserves/commands.js";
import { encodeLiability } from "../../../../cli/audit/reserves/liability-file.js";
import type { MadeReserves } from "../../../../cli/audit/reserves/make-reserves.js";
import { parseReserves } from "../../../../cli/audit/reserves/read-reserves.js";
import { encodeReserves, reservesText } from "../../../../cli/audit/reserves/reserves-file.js";
import { textBeside, writeReserves } from "../../../../cli/audit/reserves/write-reserves.js";
import { encodeGenesis } from "../../../../node/settings/genesis.js";
import { nameColdAddresses } from "../../../../ledger/treasury/moves.js";
import { added, DEPOSITS, HOT, keys, ReservesStage, textOf, wallet } from "./stage.js";

const { signal } = new AbortController();
const SECOND = parseAddress(added.address);
const secondKey = { address: SECOND, privateKey: Buffer.from("22".repeat(32), "hex") };
const others = [{ address: SECOND, role: "hot-wallet" as const }];

let stage: ReservesStage;
let genesis: string;
let said: string[];
let count = 0;

beforeAll(async () => {
  stage = await ReservesStage.open();
  genesis = fileOf("genesis.json");
  writeFileSync(genesis, encodeGenesis(stage.genesis));
});
afterAll(() => stage?.close());

function fileOf(name: string): string {
  return join(stage.folder, name);
}

const newFile = () => fileOf(`file-${(count += 1)}.json`);
const modeOf = (file: string) => (statSync(file).mode & 0o777).toString(8);

/** A draft that both wallets, or one of them, have to sign; whose key is here does not sign, either. */
function makeDraft(elsewhere = [HOT, SECOND]): Promise<MadeReserves> {
  // A ledger that owes nothing has no salts: what is made twice is the same.
  return stage.make([...keys, secondKey], others, { liabilities: [] }, [], undefined, {
    elsewhere,
  });
}

async function writtenDraft(made: MadeReserves): Promise<{ draft: string; text: string }> {
  const draft = newFile();
  const text = reservesText(await parseReserves(encodeReserves(made.contents)));
  await writeReserves(made, { out: draft, customers: undefined }, { signal, text });
  return { draft, text };
}

function context(json = false) {
  said = [];
  const print = (line: string) => void said.push(line);
  return { home: stage.folder, portOffset: 0, json, env: {}, signal, print };
}

const warn = (line: string) => void said.push(line);

/** What the command ends with, beside what it said. */
function sign(draft: string, signatures: readonly string[], out?: string, json = false) {
  const signature = signatures.length === 0 ? undefined : signatures;
  return runSignReserves(context(json), draft, { signature, out, genesis }, warn);
}

const verify = (file: string) => runVerifyReserves(context(), file, { genesis }, warn);
const by = async (signer: Wallet, text: string) =>
  `${signer.address}=${await signer.signMessage(text)}`;

describe("a draft", () => {
  it("is for those who sign, and proves nothing to anybody", async () => {
    const made = await makeDraft();
    expect(made.contents.signatures).toEqual([]);
    const { draft, text } = await writtenDraft(made);
    expect([draft, textBeside(draft)].map(modeOf)).toEqual(["600", "600"]);
    expect(readFileSync(textBeside(draft), "utf8")).toBe(text);
    expect(await verify(draft)).toBe(1);
    const names = `NOT signed by ${wallet.address}, ${added.address}`;
    expect(said.at(-1)).toContain(names);
    expect(said.join("\n")).not.toMatch(/proven, and|^Proven/m);
    const forPrograms = context(true);
    expect(await runVerifyReserves(forPrograms, draft, { genesis }, warn)).toBe(1);
    expect(JSON.parse(said[0] ?? "")).toMatchObject({
      ok: false,
      reason: expect.stringContaining(names),
    });
    const one = await writtenDraft(await makeDraft([SECOND]));
    expect(await verify(one.draft)).toBe(1);
    expect(said.at(-1)).toContain(`NOT signed by ${added.address}`);
    expect(said.at(-1)).not.toContain(wallet.address);
  });

  it("has its text beside it, or is not there", async () => {
    const made = await makeDraft();
    const out = newFile();
    writeFileSync(textBeside(out), "somebody's");
    const written = writeReserves(made, { out, customers: undefined }, { signal, text: "text" });
    await expect(written).rejects.toThrow(textBeside(out));
    expect(existsSync(out)).toBe(false);
  });

  it("shows what is to be signed, from itself alone", async () => {
    const { draft, text } = await writtenDraft(await makeDraft());
    expect(await sign(draft, [])).toBe(0);
    expect(said.join("\n")).toContain(`\n\n${text}\n\n`);
    expect(said.at(-1)).toBe(
      `A draft that proves nothing: NOT signed by ${wallet.address}, ${added.address}.`,
    );
    expect(said.join("\n")).not.toMatch(/^Proven/m);
    expect(await sign(draft, [], undefined, true)).toBe(0);
    expect(JSON.parse(said[0] ?? "")).toMatchObject({
      ok: true,
      unsigned: [wallet.address, added.address],
      text,
      textHex: hexlify(toUtf8Bytes(text)),
      digest: hashMessage(text),
    });
  });

  it("is refused to customers as a proof of reserves, until it is signed", async () => {
    const made = await stage.make(keys, [], {}, [], undefined, { elsewhere: [HOT] });
    const { draft, text } = await writtenDraft(made);
    const liability = made.liabilities.find(({ customerId }) => customerId === "alice");
    const file = newFile();
    writeFileSync(file, liability === undefined ? "" : encodeLiability(liability.file()));
    const check = (reserves: string) =>
      runVerifyLiability(context(), file, { genesis, reserves }, warn);
    expect(await check(draft)).toBe(1);
    expect(said.at(-1)).toContain(`NOT signed by ${wallet.address}`);
    const out = newFile();
    expect(await sign(draft, [await by(wallet, text)], out)).toBe(0);
    expect(await check(out)).toBe(0);
    expect(said.at(-1)).toBe("It is in the sum that the wallets signed for.");
  });
});

describe("signatures that somebody brings", () => {
  it("make the proof that is signed at once, byte for byte", async () => {
    const atOnce = textOf(
      (await stage.make([...keys, secondKey], others, { liabilities: [] })).contents,
    );
    for (const elsewhere of [[HOT, SECOND], [HOT], [SECOND]]) {
      const { draft, text } = await writtenDraft(await makeDraft(elsewhere));
      const signers = [added, wallet].filter(({ address }) =>
        elsewhere.includes(parseAddress(address)),
      );
      const signatures = await Promise.all(signers.map((signer) => by(signer, text)));
      const out = newFile();
      expect(await sign(draft, signatures, out)).toBe(0);
      expect(said.at(-1)).toBe("Proven, and covered.");
      expect(readFileSync(out, "utf8")).toBe(atOnce);
      expect(modeOf(out)).toBe("644");
      expect(await verify(out)).toBe(0);
      expect(said.at(-1)).toBe("Proven, and covered.");
    }
  });

  it("come one after the other, and who is missing is told", async () => {
    const { draft, text } = await writtenDraft(await makeDraft());
    const [between, out] = [newFile(), newFile()];
    expect(await sign(draft, [await by(added, text)], between)).toBe(2);
    expect(said.at(-1)).toBe(`A draft that proves nothing: NOT signed by ${wallet.address}.`);
    expect(said.join("\n")).toContain("2 wallets sign, and 1 have");
    expect(modeOf(between)).toBe("600");
    expect(await verify(between)).toBe(1);
    expect(said.at(-1)).toContain(`NOT signed by ${wallet.address}`);
    expect(await sign(between, [await by(wallet, text)], out, true)).toBe(0);
    expect(JSON.parse(said[0] ?? "")).toMatchObject({ ok: true, unsigned: [], wallets: 2 });
    const atOnce = newFile();
    await sign(draft, [await by(wallet, text), await by(added, text)], atOnce);
    expect(readFileSync(out, "utf8")).toBe(readFileSync(atOnce, "utf8"));
    // What is signed is signed.
    expect(await sign(out, [await by(wallet, text)], newFile())).toBe(2);
    expect(said.at(-1)).toContain("is no draft");
  });

  it("are taken of hardware that signs the digest, and names accounts in either form", async () => {
    const { draft, text } = await writtenDraft(await makeDraft([HOT]));
    const { r, s } = new SigningKey(wallet.privateKey).sign(hashMessage(text));
    const out = newFile();
    expect(await sign(draft, [`${toBech32(HOT)}=${r}${s.slice(2)}`], out)).toBe(0);
    const [signature] = (await parseReserves(readFileSync(out, "utf8").split(/(?<=\n)/)))
      .signatures;
    expect(signature).toEqual({ address: HOT, signature: await wallet.signMessage(text) });
    expect(Signature.from(signature?.signature).s).toBe(s);
  });

  it("are refused where they are not of this text by this wallet, and nothing is written", async () => {
    const { draft, text } = await writtenDraft(await makeDraft());
    const signature = await wallet.signMessage(text);
    const other = (await makeDraft([HOT])).contents;
    const nextDay = { ...other, format: "causeway-reserves/3" as const, nonce: "auditor 8" };
    const stranger = new Wallet(`0x${"33".repeat(32)}`);
    const refused: readonly (readonly [readonly string[], string])[] = [
      [[await by(wallet, text.replace("auditor 7", "auditor 8"))], "did not sign this draft"],
      [[await by(wallet, `${text}\n`)], "did not sign this draft"],
      [[await by(wallet, text.replace("keys", "keYs"))], "did not sign this draft"],
      [[`${added.address}=${signature}`], "did not sign this draft"],
      [[`${wallet.address}=${signature.slice(0, -4)}`], "did not sign this draft"],
      [[`${wallet.address}=`], "did not sign this draft"],
      [[await by(wallet, reservesText(nextDay))], "did not sign this draft"],
      [[await by(stranger, text)], `${stranger.address} is no wallet of this draft`],
      [[`${DEPOSITS}=${signature}`], `${toChecksumAddress(DEPOSITS)} is no wallet of this draft`],
      [[`${wallet.address}=${signature}`, `${HOT}=${signature}`], "has signed already"],
      // One that is right does not carry another.
      [[`${wallet.address}=${signature}`, `${added.address}=${signature}`], "did not sign"],
      [[wallet.address], "--signature does not take"],
      [[`0x12=${signature}`], "--signature does not take"],
      [[`${wallet.address}=${signature}=`], "--signature does not take"],
    ];
    for (const [signatures, why] of refused) {
      const out = newFile();
      const code = await sign(draft, signatures, out);
      expect({ why, code, said: said.join("\n") }).toEqual({
        why,
        code: 2,
        said: expect.stringContaining(why),
      });
      expect(existsSync(out)).toBe(false);
    }
  });

  it("are put to nothing but a draft that holds, and to no file that is there", async () => {
    const { draft, text } = await writtenDraft(await makeDraft([HOT]));
    const good = await by(wallet, text);
    // Somebody's draft of other accounts is signed for as what it is, and is found false.
    const lines = readFileSync(draft, "utf8").split(/(?<=\n)/);
    const [head = "", ...rest] = lines;
    const changed = newFile();
    const contents = JSON.parse(head);
    writeFileSync(
      changed,
      [`${JSON.stringify({ ...contents, chainId: "chain_1-1" })}\n`, ...rest].join(""),
    );
    expect(await sign(changed, [])).toBe(1);
    expect(said.at(-1)).toContain("it is of chain_1-1");
    const [first = {}] = contents.signatures;
    const forged = { ...contents, signatures: [{ ...first, address: DEPOSITS }] };
    writeFileSync(changed, [`${JSON.stringify(forged)}\n`, ...rest].join(""));
    expect(await sign(changed, [good], newFile())).toBe(1);
    expect(said.at(-1)).toContain(toChecksumAddress(DEPOSITS));
    expect(await sign(draft, [good], changed)).toBe(2);
    expect(said.at(-1)).toContain("is there already");
    expect(await sign(draft, [good])).toBe(2);
    expect(await sign(draft, [], newFile())).toBe(2);
    expect(said.at(-1)).toContain("--out FILE beside --signature");
    writeFileSync(changed, "{}\n");
    expect(await sign(changed, [good], newFile())).toBe(2);
    expect(said.at(-1)).toContain("is no proof of reserves");
    const former = newFile();
    writeFileSync(
      former,
      await stage.formerText((await stage.make()).contents, "causeway-reserves/2"),
    );
    expect(await sign(former, [])).toBe(2);
  });
});

describe("wallets that sign elsewhere", () => {
  const make = (elsewhere: readonly (typeof HOT)[], leaveOut: readonly (typeof HOT)[] = []) =>
    stage.make(keys, others, {}, [], undefined, { elsewhere, leaveOut });

  it("are of this ledger, and are not left out, nor signed for by a keystore", async () => {
    for (const [work, name] of [
      [() => make([SECOND, DEPOSITS]), DEPOSITS],
      [() => make([SECOND], [SECOND]), SECOND],
      [() => stage.make(keys, others, {}, [secondKey], undefined, { elsewhere: [SECOND] }), SECOND],
    ] as const) {
      await expect(work()).rejects.toMatchObject({
        code: "BAD_OPTION",
        message: expect.stringContaining(toChecksumAddress(name)),
      });
    }
    await expect(make([])).rejects.toThrow("--sign-elsewhere");
    expect(stage.provenCount).toBe(0);
  });

  // From here on the ledger has cold storage.
  it("may be cold storage, which counts as soon as it has signed", async () => {
    const cold = parseAddress(added.address);
    await nameColdAddresses(stage.ledger.owner, [{ asset: "TOKEN", address: cold }]);
    const made = await stage.make(keys, [], {}, [], undefined, { elsewhere: [cold] });
    expect(made.coldLeftOut).toEqual([]);
    expect(made.contents.signatures.map(({ address }) => address)).toEqual([HOT]);
    const { draft, text } = await writtenDraft(made);
    const out = newFile();
    expect(await sign(draft, [await by(added, text)], out)).toBe(0);
    expect(said.join("\n")).toContain("3, of which 2 wallets signed");
  });
});
