/** What `causeway tx sign` takes of a file: what is signed is what whoever looked at it has read. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { parseAddress, toBech32 } from "../../../../chain/address.js";
import { runCommand } from "../../../helpers/command-line.js";

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
function sign(text: string) {
  writeFileSync(file, text);
  const place = ["--offline", "--chain-id", "chain_6940-1", "--sequence", "0"];
  return runCommand(home, ["tx", "sign", file, "--from", key, ...place]);
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
