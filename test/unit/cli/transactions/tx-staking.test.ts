import { afterAll, describe, expect, it } from "@jest/globals";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../../helpers/processes/command-line.js";

const home = mkdtempSync(join(tmpdir(), "causeway-tx-staking-"));
const key = join(home, "operator.key");
writeFileSync(key, `0x${"11".repeat(32)}\n`, { mode: 0o600 });

afterAll(() => rmSync(home, { recursive: true, force: true }));

/** A command's transaction, signed without a node. */
function signed(words: readonly string[]) {
  const place = ["--offline", "--chain-id", "chain_6940-1", "--sequence", "0", "--fees", "1atoken"];
  return runCommand(home, ["tx", ...words, "--from", key, ...place, "--yes"]);
}

describe("the least self-delegation of a validator", () => {
  const thousandTokens = "1000000000000000000000";

  it("may be more atoken than 64 bits hold, which is nine TOKEN", async () => {
    const edited = await signed([
      "staking",
      "edit-validator",
      "--min-self-delegation",
      thousandTokens,
    ]);
    expect(edited).toMatchObject({ code: 0, err: "" });
    expect(edited.out).toContain(`"min_self_delegation":"${thousandTokens}"`);
    const pubkey = `{"@type":"/cosmos.crypto.ed25519.PubKey","key":"${Buffer.alloc(32, 7).toString("base64")}"}`;
    const terms = ["--amount", `${thousandTokens}atoken`, "--moniker", "one", "--pubkey", pubkey];
    const least = ["--min-self-delegation", thousandTokens];
    const registered = await signed(["validator", "register", ...terms, ...least]);
    expect(registered).toMatchObject({ code: 0, err: "" });
    expect(registered.out).toContain(`"min_self_delegation":"${thousandTokens}"`);
  });

  it.each(["1.5", "1e18", "-1", "", `${2n ** 256n}`, "10atoken"])("is not %p", async (text) => {
    const edited = await signed(["staking", "edit-validator", "--min-self-delegation", text]);
    expect(edited).toMatchObject({ code: 1, out: "" });
    expect(edited.err).toContain("--min-self-delegation");
  });
});

describe("a vote", () => {
  it.each(["no_with_veto", "no-with-veto", "NoWithVeto", "VOTE_OPTION_NO_WITH_VETO"])(
    "is a veto in the word %s",
    async (word) => {
      const vote = await signed(["gov", "vote", "1", word]);
      expect(vote).toMatchObject({ code: 0, err: "" });
      expect(vote.out).toContain('"option":"VOTE_OPTION_NO_WITH_VETO"');
      const divided = await signed(["gov", "weighted-vote", "1", `yes=0.5,${word}=0.5`]);
      expect(divided).toMatchObject({ code: 0, err: "" });
      expect(divided.out).toContain('"VOTE_OPTION_NO_WITH_VETO"');
    },
  );
});

describe("an upgrade", () => {
  it("is proposed with the flags of the SDK's guides, whose checks are not made here", async () => {
    const terms = ["next", "--upgrade-height", "100", "--title", "t"];
    const plain = await signed(["upgrade", "software-upgrade", ...terms]);
    expect(plain).toMatchObject({ code: 0, err: "" });
    const checks = ["--no-validate", "--no-checksum-required", "--daemon-name", "evmd"];
    const authority = /"authority":"(addr1[0-9a-z]+)"/.exec(plain.out)?.[1] ?? "";
    for (const flags of [checks, ["--authority", authority]]) {
      const typed = await signed(["upgrade", "software-upgrade", ...terms, ...flags]);
      expect(typed).toEqual(plain);
    }
    const cancelled = ["upgrade", "cancel-software-upgrade", "--title", "t", "--authority"];
    expect(await signed([...cancelled, authority])).toMatchObject({ code: 0, err: "" });
  });

  it.each(["software-upgrade", "cancel-software-upgrade"])(
    "by another authority than governance is refused: %s",
    async (name) => {
      const other = `0x${"22".repeat(20)}`;
      const terms = name === "software-upgrade" ? ["next", "--upgrade-height", "100"] : [];
      const words = ["upgrade", name, ...terms, "--title", "t", "--authority", other];
      const refused = await signed(words);
      expect(refused).toMatchObject({ code: 1, out: "" });
      expect(refused.err).toContain("--authority must be");
    },
  );
});
