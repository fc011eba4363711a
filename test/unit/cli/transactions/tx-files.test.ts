/** What `causeway tx sign` takes of a file: what is signed is what whoever looked at it has read. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { parseAddress, toBech32 } from "../../../../chain/address.js";
import { runCommand } from "../../../helpers/processes/command-line.js";

const home = mkdtempSync(join(tmpdir(), "causeway-tx-files-"));
const key = join(home, "some.key");
const file = join(home, "draft.json");
const [friend, stranger] = ["22", "33"].map((digits) => {
  return toBech32(parseAddress(`0x${digits.repeat(20)}`));
});

let draft: string;

beforeAll(async () => {
  writeFileSync(key, `0x${"11".repeat(32)}\n`, { mode: 0o600 });
  const words = ["tx", "bank", "send", friend ?? "", "1atoken", "--from", key, "--offline"];
  const drafted = await runCommand(home, [...words, "--fees", "5000atoken", "--generate-only"]);
  expect(drafted).toMatchObject({ code: 0, err: "" });
  draft = drafted.out;
});

afterAll(() => rmSync(home, { recursive: true }));

/** Signs a text offline. */
function sign(text: string, ...flags: readonly string[]) {
  writeFileSync(file, text);
  const place = ["--offline", "--chain-id", "chain_6940-1", "--sequence", "0"];
  return runCommand(home, ["tx", "sign", file, "--from", key, ...place, ...flags]);
}

describe("a draft that names the receiver twice", () => {
  it.each([
    ["in one name", `"to_address":"${stranger}"`],
    ["in both names of the field", `"toAddress":"${stranger}"`],
  ])("%s is not signed", async (_name, other) => {
    const own = `"to_address":"${friend}"`;
    expect(draft).toContain(own);
    expect(await sign(draft)).toMatchObject({ code: 0, err: "" });
    for (const both of [`${own},${other}`, `${other},${own}`]) {
      const refused = await sign(draft.replace(own, both));
      expect(refused).toMatchObject({ code: 1, out: "" });
      expect(refused.err).toContain("twice");
    }
  });
});

describe("a draft with a time after which it is void", () => {
  const none = `"timeout_timestamp":null`;
  const timed = () => draft.replace(none, `"timeout_timestamp":"2030-01-02T03:04:05.6Z"`);

  it.each(["direct", "amino-json"])("is signed with it, %s", async (mode) => {
    expect(draft).toContain(none);
    const flags = ["--sign-mode", mode];
    const signed = await sign(timed(), ...flags);
    expect(signed).toMatchObject({ code: 0, err: "" });
    const { body, signatures } = JSON.parse(signed.out);
    expect(body.timeout_timestamp).toBe("2030-01-02T03:04:05.600Z");
    // It is signed, not only shown.
    expect(signatures).not.toEqual(JSON.parse((await sign(draft, ...flags)).out).signatures);
  });

  it("is refused where it is unordered as well, which the chain takes of nobody", async () => {
    const unordered = timed().replace(`"unordered":false`, `"unordered":true`);
    expect((await sign(unordered)).err).toContain("options that the chain refuses");
  });
});

describe("a transaction that is made for so long", () => {
  const words = ["tx", "bank", "send", friend ?? "", "1atoken", "--from", key, "--offline"];
  const make = (...flags: readonly string[]) =>
    runCommand(home, [...words, "--fees", "5000atoken", "--generate-only", ...flags]);

  it.each([
    ["90s", 90],
    ["1h30m", 5_400],
    ["1.5m", 90],
  ])("is void after it, %s", async (duration, seconds) => {
    const before = Date.now();
    const { code, out, err } = await make("--timeout-duration", duration);
    expect([err, code]).toEqual(["", 0]);
    const at = Date.parse(JSON.parse(out).body.timeout_timestamp) - seconds * 1_000;
    expect(at).toBeGreaterThanOrEqual(before);
    expect(at).toBeLessThanOrEqual(Date.now());
  });

  it("has no such time for none, and not a height beside it", async () => {
    expect(JSON.parse((await make("--timeout-duration", "0s")).out).body.timeout_timestamp).toBe(
      null,
    );
    for (const [flags, text] of [
      [["--timeout-duration", "5s", "--timeout-height", "7"], "take one"],
      [["--timeout-duration", "soon"], "such as 15s"],
      [["--timeout-duration", "5"], "such as 15s"],
    ] as const) {
      const { code, err } = await make(...flags);
      expect([flags, code, err]).toEqual([flags, 1, expect.stringContaining(text)]);
    }
  });
});

describe("flags of the SDK's command line", () => {
  const place = ["--chain-id", "chain_6940-1", "--node", "tcp://127.0.0.1:1"];

  it("count for bytes of a transaction, whose forms ask no node", async () => {
    writeFileSync(file, draft);
    const encoded = await runCommand(home, ["tx", "encode", file]);
    expect(encoded).toMatchObject({ code: 0, err: "" });
    for (const form of ["text", "json"]) {
      expect(await runCommand(home, ["tx", "encode", file, ...place, "-o", form])).toEqual(encoded);
    }
    const decode = (...flags: readonly string[]) =>
      runCommand(home, ["tx", "decode", encoded.out, ...flags]);
    const json = await decode();
    expect(JSON.parse(json.out).body).toEqual(JSON.parse(draft).body);
    expect(await decode(...place, "--output", "json")).toEqual(json);
    expect((await decode("--output", "text")).out).toContain(`to_address: ${friend}`);
    expect((await decode("--output", "xml")).err).toContain("text or json");
  });

  it.each([
    [["--fee-payer", `${friend}`], "whoever signs pays"],
    [["--fee-granter", `${friend}`], "whoever signs pays"],
    [["--unordered"], "sequence"],
  ])("that the chain has nothing for are refused with the reason, %j", async (flags, text) => {
    writeFileSync(file, draft);
    for (const words of [
      ["bank", "send", `${friend}`, "1atoken"],
      ["sign", file],
    ]) {
      const { code, out, err } = await runCommand(home, ["tx", ...words, ...flags]);
      expect([words, code, out, err]).toEqual([words, 1, "", expect.stringContaining(text)]);
    }
  });

  it.each([[["--grpc-addr", "127.0.0.1:9090"]], [["--grpc-insecure"]]])(
    "that name another interface are refused with the one that is asked, %j",
    async (flags) => {
      const { code, err } = await runCommand(home, ["query", "auth", "params", ...flags]);
      expect([code, err]).toEqual([1, expect.stringContaining("--node")]);
    },
  );
});
