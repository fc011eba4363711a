/** Keystores that `audit reserves` is given: where their passphrases lie, and which one does not open. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { encryptKeystore } from "../../../../chain/signing/keystore.js";
import { runAuditReserves } from "../../../../cli/audit/reserves/commands.js";
import { encodeGenesis } from "../../../../node/settings/genesis.js";
import { testGenesis } from "../../../helpers/chains/execution-chain.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "causeway-keystores-"));
  // The home's own wallet is signed for elsewhere.
  mkdirSync(join(folder, "config"));
  const address = `0x${"22".repeat(20)}`;
  writeFileSync(join(folder, "config", "hot-wallet.json"), JSON.stringify({ address }));
  const genesis = testGenesis(`0x${"11".repeat(20)}`);
  writeFileSync(join(folder, "genesis.json"), encodeGenesis(genesis));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function written(name: string, passphraseName: string, passphrase: string, its = "secret") {
  const keystore = join(folder, name);
  const json = await encryptKeystore(Buffer.alloc(32, 7), its, { n: 2, r: 1, p: 1 });
  writeFileSync(keystore, json);
  writeFileSync(join(folder, passphraseName), `${passphrase}\n`);
  return keystore;
}

async function saidOf(keystore: readonly string[]) {
  const said: string[] = [];
  const { signal } = new AbortController();
  const print = (line: string) => void said.push(line);
  const context = { home: folder, portOffset: 0, json: false, env: {}, signal, print };
  const genesis = join(folder, "genesis.json");
  const options = { out: join(folder, "reserves.json"), height: "1", genesis, keystore };
  expect(await runAuditReserves(context, options, print)).toBe(2);
  return said.join("\n");
}

it("have their passphrases beside them, whatever they are called; one that stays shut is named", async () => {
  const cold = await written("cold.json", "cold.passphrase", "secret");
  const geth = await written("UTC--2026-01-01--07", "UTC--2026-01-01--07.passphrase", "secret");
  const blank = await written("blank.json", "blank.passphrase", " secret ", " secret ");
  const shut = await written("shut.json", "shut.passphrase", "another one");
  expect(await saidOf([cold, geth, blank, shut])).toContain(
    `${shut}: the passphrase does not open the keystore`,
  );
  const alone = join(folder, "UTC--2026-01-01--08");
  writeFileSync(alone, await encryptKeystore(Buffer.alloc(32, 8), "secret", { n: 2, r: 1, p: 1 }));
  expect(await saidOf([alone])).toContain(`cannot read ${alone}.passphrase (ENOENT)`);
});
