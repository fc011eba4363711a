/** The program that reaches PKCS#11 modules, over a module that is made up; see pkcs11-module.py. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { createCommandSigner } from "../../../../withdrawal-worker/signers/command-signer.js";
import type { KeyHolder } from "../../../../withdrawal-worker/signers/signer-port.js";
import { signerOver } from "../../../helpers/keys/signing.js";
import { ADDRESS, LIMITS, paymentOn, WALLET } from "./intents.js";

const { signal } = new AbortController();
const MODULE = fileURLToPath(new URL("pkcs11-module.py", import.meta.url));
const SIGNER = fileURLToPath(new URL("../../../../deploy/pkcs11-signer.py", import.meta.url));
const hasPython = spawnSync("python3", ["--version"]).status === 0;
const withPython = hasPython ? describe : describe.skip;

let folder: string;
let holder: KeyHolder;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pkcs11-"));
  const command = ["python3", MODULE, SIGNER, WALLET.privateKey, join(folder, "failure")];
  holder = createCommandSigner({ command, timeoutMs: 20_000, address: ADDRESS });
});

afterEach(async () => {
  await holder.close();
  rmSync(folder, { recursive: true });
});

/** Where the program writes beside the PIN's file that it was refused. */
const noteOf = () => {
  const secret = join(folder, "failure.secret");
  const named = createHash("sha256").update(`m\nhot\n${secret}`).digest("hex");
  return `${secret}.refused-${named.slice(0, 16)}`;
};
const failOnce = (number: string) => writeFileSync(join(folder, "failure"), number);
const open = () => signerOver(holder, { chainId: 6940n, limits: LIMITS });

withPython(`the PKCS#11 program${hasPython ? "" : " [SKIPPED: needs python3]"}`, () => {
  it("signs what the worker asks for", async () => {
    const [outcome] = await open().sign([paymentOn(7n)], { signal });
    expect(outcome?.kind).toBe("signed");
  });

  it("proves that the key is there, and not where the token does not sign", async () => {
    const signer = open();
    // CKR_DEVICE_REMOVED
    failOnce("0x32");
    expect(await signer.provesKey("is it there?", { signal })).toBe(false);
    // It may be met while it ends.
    await signer.provesKey("is it there?", { signal });
    expect(await signer.provesKey("is it there?", { signal })).toBe(true);
  });

  it("passes over slots of which the module cannot tell the token", async () => {
    // CKR_TOKEN_NOT_RECOGNIZED
    writeFileSync(join(folder, "failure.slot"), "0xe1");
    const [outcome] = await open().sign([paymentOn(7n)], { signal });
    expect(outcome?.kind).toBe("signed");
  });

  it("says of a token that is not found which slots could not be told", async () => {
    writeFileSync(join(folder, "failure.slot"), "0xe1");
    writeFileSync(join(folder, "failure.alone"), "");
    const program = [MODULE, SIGNER, WALLET.privateKey, join(folder, "failure")];
    const { stderr } = spawnSync("python3", program, { encoding: "utf8" });
    expect(stderr).toBe("pkcs11-signer: no token has this label (slot 0: C_GetTokenInfo: 0xe1)\n");
  });

  it("signs with the key of the wallet that asks, and with no other one's", async () => {
    const other = parseAddress(`0x${"0e".repeat(20)}`);
    const command = ["python3", MODULE, SIGNER, WALLET.privateKey, join(folder, "failure")];
    const named = `${WALLET.address}=wallet`;
    const askWith = async (address: Address, ...names: readonly string[]) => {
      const asking = createCommandSigner({
        command: [...command, ...names],
        timeoutMs: 20_000,
        address,
      });
      const signer = signerOver(asking, { chainId: 6940n, limits: LIMITS });
      try {
        return (await signer.sign([paymentOn(7n)], { signal }))[0];
      } finally {
        await asking.close();
      }
    };
    expect((await askWith(ADDRESS, named, `${other}=second`))?.kind).toBe("signed");
    // A signature of another wallet's key would be a wrong answer, which freezes it.
    expect(await askWith(other, named)).toMatchObject({
      kind: "unanswered",
      reason: expect.stringContaining(`--key ${other}=LABEL`),
    });
    expect((await askWith(ADDRESS, "wallet", `${other}=second`))?.kind).toBe("unanswered");
  });

  it("tries a PIN that is refused once, however often it is asked: tokens are locked by a few tries", async () => {
    writeFileSync(join(folder, "failure.pin"), "0xa0");
    const signer = open();
    for (let round = 0; round < 3; round += 1) {
      const [refused] = await signer.sign([paymentOn(7n)], { signal });
      expect(refused).toMatchObject({
        kind: "unanswered",
        reason: expect.stringContaining("C_Login: 0xa0"),
      });
    }
    expect(readFileSync(join(folder, "failure.logins"), "utf8")).toBe("tried\n");
  });

  it("tries a PIN that is refused once for all wallets, and again when its file is another", async () => {
    const others = [0x0e, 0x0f].map((byte) =>
      parseAddress(`0x${Buffer.alloc(20, byte).toString("hex")}`),
    );
    const names = [ADDRESS, ...others].map((address) => `${address}=wallet`);
    const command = [
      "python3",
      MODULE,
      SIGNER,
      WALLET.privateKey,
      join(folder, "failure"),
      ...names,
    ];
    const secret = join(folder, "failure.secret");
    writeFileSync(secret, "wrong");
    writeFileSync(join(folder, "failure.pin"), "0xa0");
    const askAll = async () => {
      const holders = [ADDRESS, ...others].map((address) =>
        createCommandSigner({ command, timeoutMs: 20_000, address }),
      );
      try {
        const signers = holders.map((one) => signerOver(one, { chainId: 6940n, limits: LIMITS }));
        const asked = signers.map((signer) => signer.sign([paymentOn(7n)], { signal }));
        return (await Promise.all(asked)).flat();
      } finally {
        for (const one of holders) await one.close();
      }
    };
    // The worker is started anew meanwhile: whoever ends it by a wrong PIN does so several times.
    for (let start = 0; start < 2; start += 1) {
      for (const refused of await askAll()) {
        const reason = expect.stringContaining("C_Login: 0xa0");
        expect(refused).toMatchObject({ kind: "unanswered", reason });
      }
    }
    const logins = () => readFileSync(join(folder, "failure.logins"), "utf8");
    expect(logins()).toBe("tried\n");
    rmSync(join(folder, "failure.pin"));
    writeFileSync(secret, "the right one");
    expect((await askAll())[0]?.kind).toBe("signed");
    expect(logins()).toBe("tried\n".repeat(4));
  });

  it("gives the PIN as it stands in its file, but for line ends", async () => {
    writeFileSync(join(folder, "failure.secret"), " 12\t34 \r\n");
    await open().sign([paymentOn(7n)], { signal });
    expect(readFileSync(join(folder, "failure.given"), "utf8")).toBe(" 12\t34 ");
  });

  it.each([
    ["a pipe that nobody writes to", (path: string) => spawnSync("mkfifo", [path])],
    ["bytes that are no text", (path: string) => writeFileSync(path, Buffer.of(0xff, 0x0a))],
    ["a folder", (path: string) => mkdirSync(path)],
  ])("is not stopped by %s where a refusal would be noted", async (_name, make) => {
    writeFileSync(join(folder, "failure.secret"), "right");
    make(noteOf());
    const [outcome] = await open().sign([paymentOn(7n)], { signal });
    expect(outcome?.kind).toBe("signed");
  });

  /** Starts the program twice with a wrong PIN whose note has no room beside it; gives the reasons. */
  const refusedTwice = async (temporary: string) => {
    writeFileSync(join(folder, "failure.secret"), "wrong");
    writeFileSync(join(folder, "failure.pin"), "0xa0");
    mkdirSync(noteOf());
    const program = ["python3", MODULE, SIGNER, WALLET.privateKey, join(folder, "failure")];
    const command = ["env", `TMPDIR=${temporary}`, ...program];
    const reasons: unknown[] = [];
    for (let start = 0; start < 2; start += 1) {
      const one = createCommandSigner({ command, timeoutMs: 20_000, address: ADDRESS });
      const signer = signerOver(one, { chainId: 6940n, limits: LIMITS });
      reasons.push(...(await signer.sign([paymentOn(7n)], { signal })));
      await one.close();
    }
    return { reasons, logins: readFileSync(join(folder, "failure.logins"), "utf8") };
  };

  it("notes a refusal in a folder of this user's own where the PIN's takes none", async () => {
    const { reasons, logins } = await refusedTwice(folder);
    const reason = expect.not.stringContaining("every start");
    expect(reasons).toMatchObject([{ reason }, { reason }]);
    expect(logins).toBe("tried\n");
  });

  it("says of a refusal that it can note nowhere that every start takes a try", async () => {
    // Others may write here, and so make the note of a PIN that was never refused, or take one away.
    const own = join(folder, `causeway-${process.getuid?.()}`);
    mkdirSync(own);
    chmodSync(own, 0o777);
    const { reasons, logins } = await refusedTwice(folder);
    const reason = expect.stringMatching(/C_Login: 0xa0.*every start/);
    expect(reasons).toMatchObject([{ reason }, { reason }]);
    expect(logins).toBe("tried\n".repeat(2));
  });

  it.each([
    ["session handle invalid", "0xb3"],
    ["device removed", "0x32"],
    ["user not logged in", "0x101"],
    ["a number of the vendor's", "0x80000382"],
  ])("begins a new session behind a lost one (%s)", async (_name, number) => {
    failOnce(number);
    const signer = open();
    const [refused] = await signer.sign([paymentOn(7n)], { signal });
    expect(refused).toMatchObject({
      kind: "unanswered",
      reason: expect.stringContaining(`C_SignInit: ${number}`),
    });
    // It may be met while it ends.
    await signer.sign([paymentOn(7n)], { signal });
    const [outcome] = await signer.sign([paymentOn(7n)], { signal });
    expect(outcome?.kind).toBe("signed");
  });
});
