/** A wallet that still has tokens is not retired by the way: nobody would look for them again. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { createProgram } from "../../../cli/program/program.js";
import { drainWallet } from "../../../ledger/wallets/wallet-registry.js";
import { walletStatus } from "../../../ledger/wallets/wallet.js";
import { roleUrl } from "../../helpers/services/ledger.js";
import { callOf, contractAt, THIEF, TokenBench } from "../tokens/token-bench.js";
import { freshAddress, WALLET } from "../../helpers/exchange/house.js";

const REASON = ["--reason", "rotated", "--operator", "ann"];

let bench: TokenBench;

beforeAll(async () => {
  bench = await TokenBench.open();
  mkdirSync(join(bench.home, "config"));
  const keystore = JSON.stringify({ address: WALLET });
  writeFileSync(join(bench.home, "config", "hot-wallet.json"), keystore);
  await bench.watch();
  await bench.deploy();
  await bench.mine([
    callOf("PlainToken", "mint", [WALLET, 50n]),
    { to: WALLET, value: 10n ** 17n },
  ]);
  await bench.caughtUp();
  await drainWallet(bench.ledger.owner, WALLET, { operator: "ann", reason: "rotated" });
});
afterAll(() => bench.close());

/** `causeway wallets retire` with dust of all coins that the wallet has. */
async function retire(...words: readonly string[]): Promise<number> {
  let code = -1;
  const program = createProgram({
    version: "0",
    env: {
      DATABASE_URL: roleUrl(bench.ledger.ownerUrl, "operator"),
      CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: bench.chain.url,
    },
    signal: new AbortController().signal,
    print: () => undefined,
    warn: () => undefined,
    setExitCode: (given) => {
      code = given;
    },
  });
  const typed = ["wallets", "retire", WALLET, "--dust-atoken", `${10n ** 18n}`, ...words];
  await program.parseAsync(["node", "causeway", ...typed, ...REASON, "--home", bench.home]);
  return code;
}

it("is refused by their names until they are moved", async () => {
  await expect(retire()).rejects.toMatchObject({
    code: "WALLET_NOT_EMPTY",
    message: expect.stringContaining("50 units of PLAIN"),
  });
  expect(await walletStatus(bench.database, WALLET)).toBe("draining");
  await bench.mine([{ from: THIEF, ...callOf("PlainToken", "transfer", [freshAddress(), 50n]) }]);
  // Its contract answers nothing about balances any more: what it has of it may be anything.
  await bench.mine([callOf("UpgradableProxy", "upgradeTo", [freshAddress()])]);
  await expect(retire()).rejects.toMatchObject({
    code: "WALLET_NOT_EMPTY",
    message: expect.stringContaining("as much of PROXY as its contract does not tell"),
  });
  expect(await walletStatus(bench.database, WALLET)).toBe("draining");
  await bench.mine([callOf("UpgradableProxy", "upgradeTo", [contractAt("PlainToken")])]);
  // One that is listed before it is made.
  await bench.ledger.owner.query(
    `INSERT INTO asset (symbol, contract, decimals, from_height) VALUES ('LATER', $1, 6, 0)`,
    [freshAddress()],
  );
  expect(await retire()).toBe(0);
  expect(await walletStatus(bench.database, WALLET)).toBe("retired");
});
