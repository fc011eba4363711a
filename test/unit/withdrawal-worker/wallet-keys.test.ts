/** Keystores that come into a running worker's home: what cannot be read for a moment is read later. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { encryptKeystoreJsonSync, Wallet } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import type { WorkerConfig } from "../../../withdrawal-worker/config.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { SignerTotals } from "../../../withdrawal-worker/signers/signer-totals.js";
import { WalletKeys } from "../../../withdrawal-worker/wallet-keys.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { silentLog } from "../../helpers/services/ledger.js";

const [first, second] = ["11", "22"].map((byte) => new Wallet(`0x${byte.repeat(32)}`));

let home: string;
let keys: WalletKeys;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "causeway-keys-"));
  mkdirSync(join(home, "config"));
  write("hot-wallet.json", keystoreOf(first));
  write("hot-wallet.passphrase", "secret\n");
  keys = openKeys();
});

const openKeys = (signer: Partial<WorkerConfig["signer"]> = {}) =>
  new WalletKeys({
    home,
    settings: { kind: "keystore", url: "", command: [], "timeout-ms": 5_000, ...signer },
    chainId: FAKE_CHAIN_ID,
    limits: {
      gasPriceCapAtoken: 10n ** 9n,
      gasLimitMax: 1_000_000n,
      feePerPayoutAtoken: 10n ** 17n,
    },
    totals: new SignerTotals(join(home, "signer-totals"), systemClock),
    tokens: [],
    log: silentLog,
  });

afterEach(async () => {
  await keys.close();
  rmSync(home, { recursive: true });
});

function write(name: string, content: string): void {
  writeFileSync(join(home, "config", name), content);
}

function keystoreOf(wallet: Wallet | undefined, passphrase = "secret"): string {
  if (wallet === undefined) throw new Error("no wallet");
  const { address, privateKey } = wallet;
  const scrypt = { N: 1_024, r: 8, p: 1 };
  return encryptKeystoreJsonSync({ address, privateKey }, passphrase, { scrypt });
}

const addressOf = (wallet: Wallet | undefined) => parseAddress(wallet?.address.toLowerCase() ?? "");

const isOpened = (wallet: Wallet | undefined) => keys.signerOf(addressOf(wallet)) !== undefined;

it("are looked for again where their folder cannot be read", () => {
  write("wallets", "no folder");
  keys.refresh();
  expect(isOpened(first)).toBe(true);
  rmSync(join(home, "config", "wallets"));
  mkdirSync(join(home, "config", "wallets"));
  write("wallets/second.passphrase", "secret\n");
  write("wallets/second.json", keystoreOf(second));
  keys.refresh();
  expect(isOpened(second)).toBe(true);
});

it("are opened once they can be read", () => {
  const passphrase = join(home, "config", "wallets", "second.passphrase");
  mkdirSync(passphrase, { recursive: true });
  write("wallets/second.json", keystoreOf(second));
  keys.refresh();
  rmSync(passphrase, { recursive: true });
  write("wallets/second.passphrase", "secret\n");
  keys.refresh();
  expect(isOpened(second)).toBe(true);
});

it("are opened with the blanks that their passphrases begin and end with", () => {
  mkdirSync(join(home, "config", "wallets"));
  write("wallets/second.passphrase", " of two words \r\n");
  write("wallets/second.json", keystoreOf(second, " of two words "));
  keys.refresh();
  expect(isOpened(second)).toBe(true);
});

it("with another passphrase are tried at the next start", () => {
  mkdirSync(join(home, "config", "wallets"));
  write("wallets/second.passphrase", "another\n");
  write("wallets/second.json", keystoreOf(second));
  keys.refresh();
  write("wallets/second.passphrase", "secret\n");
  keys.refresh();
  expect(isOpened(second)).toBe(false);
});

it("are opened beside a first one that is shut, whose files are named with what to do", () => {
  mkdirSync(join(home, "config", "wallets"));
  write("wallets/second.passphrase", "secret\n");
  write("wallets/second.json", keystoreOf(second));
  write("hot-wallet.passphrase", "another\n");
  keys = openKeys();
  expect([isOpened(first), isOpened(second)]).toEqual([false, true]);
  const [keystore, passphrase] = ["hot-wallet.json", "hot-wallet.passphrase"].map((name) =>
    join(home, "config", name),
  );
  expect(keys.faultOf(addressOf(first))).toBe(
    `${keystore}: the passphrase does not open the keystore; it was read from ${passphrase}: ` +
      "put the right one there, and start the worker anew",
  );
  expect(keys.faultOf(addressOf(second))).toBeUndefined();
});

it("of which the first has no passphrase sign once it is there", () => {
  const passphrase = join(home, "config", "hot-wallet.passphrase");
  rmSync(passphrase);
  keys = openKeys();
  expect(keys.faultOf(addressOf(first))).toContain(passphrase);
  write("hot-wallet.passphrase", "secret\n");
  keys.refresh();
  expect([isOpened(first), keys.faultOf(addressOf(first))]).toEqual([true, undefined]);
});

it("are not opened by settings that contradict each other", () => {
  expect(() => openKeys({ kind: "web3signer" })).toThrow(/signer\.url/);
});
