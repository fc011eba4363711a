/** Addresses that a lost ledger had given out and that only tokens came to: they are found, and given to nobody else. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { HDNodeWallet, Mnemonic } from "ethers";
import { encodeTokenList } from "../../../chain/token-list.js";
import { createProgram } from "../../../cli/program/program.js";
import { derivation } from "../../helpers/services/watcher.js";
import { roleUrl } from "../../helpers/services/ledger.js";
import { WALLET } from "../../helpers/exchange/house.js";
import { callOf, TokenBench, TOKENS } from "./token-bench.js";

/** Index of the only address that anything came to. */
const INDEX = 18;
const ADDRESS = derivation.addressAt(INDEX);

let bench: TokenBench;

beforeAll(async () => {
  bench = await TokenBench.open();
  const phrase = Mnemonic.fromPhrase(`${"test ".repeat(11)}junk`);
  const { extendedKey } = HDNodeWallet.fromMnemonic(phrase, "m/44'/60'/0'/0").neuter();
  const config = join(bench.home, "config");
  mkdirSync(config);
  writeFileSync(join(config, "hot-wallet.json"), JSON.stringify({ address: WALLET }));
  writeFileSync(join(config, "deposit.xpub"), `${extendedKey}\n`, { mode: 0o600 });
  writeFileSync(join(config, "tokens.json"), encodeTokenList(TOKENS));
  await bench.deploy();
  await bench.mine([callOf("PlainToken", "mint", [ADDRESS, 700n])]);
  await bench.mine([]);
});
afterAll(() => bench.close());

it("are registered up to the last one that holds a token of the list", async () => {
  const program = createProgram({
    version: "0",
    env: {
      DATABASE_URL: roleUrl(bench.ledger.ownerUrl, "operator"),
      CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: bench.chain.url,
    },
    signal: new AbortController().signal,
    print: () => undefined,
    warn: () => undefined,
    setExitCode: () => undefined,
  });
  const typed = ["recover", "--declare", "the home is lost as well", "--apply"];
  await program.parseAsync(["node", "causeway", ...typed, "--home", bench.home]);
  const known = await bench.database.query(
    `SELECT max(index)::integer AS last, count(*)::integer AS count FROM deposit_address`,
  );
  // With those behind it, which may have been told as well.
  const last = INDEX + 1_000;
  expect(known).toEqual([{ last, count: last + 1 }]);
  await bench.watch();
  await bench.caughtUp();
  expect(await bench.database.query(`SELECT address, asset, status FROM deposit`)).toEqual([
    { address: ADDRESS, asset: "PLAIN", status: "suspense" },
  ]);
  expect((await bench.reconcile()).clean).toBe(true);
  expect(await bench.register("bob")).toBe(derivation.addressAt(last + 1));
});
