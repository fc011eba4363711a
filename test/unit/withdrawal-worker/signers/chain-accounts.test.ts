/** The signers of a home's wallets: whom they never pay. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { encryptKeystoreJsonSync, Wallet } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import { USUAL_ACCOUNTS } from "../../../../chain/chain-accounts.js";
import { killSwitchPath, policyPath } from "../../../../ledger/policy/policy-paths.js";
import { PERMISSIVE_POLICY, policyFileText } from "../../../../ledger/policy/policy.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { SignerTotals } from "../../../../withdrawal-worker/signers/signer-totals.js";
import { WalletKeys } from "../../../../withdrawal-worker/wallet-keys.js";
import { silentLog } from "../../../helpers/services/ledger.js";

const { address, privateKey } = new Wallet(`0x${"11".repeat(32)}`);
const WALLET = parseAddress(address);
const BURN = parseAddress(`0x${"b0".repeat(20)}`);

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "causeway-keys-"));
  mkdirSync(join(home, "config"));
  const keystore = encryptKeystoreJsonSync({ address, privateKey }, "secret", {
    scrypt: { N: 1_024, r: 8, p: 1 },
  });
  const write = (file: string, text: string) => writeFileSync(file, text, { mode: 0o600 });
  write(join(home, "config", "hot-wallet.json"), keystore);
  write(join(home, "config", "hot-wallet.passphrase"), "secret\n");
  write(policyPath(home), policyFileText(PERMISSIVE_POLICY));
  const none = { level: "none", reason: "", by: "", at: null };
  write(killSwitchPath(home), JSON.stringify(none));
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

it("pay none of the accounts that the chain's genesis names, once its node has told them", async () => {
  let accounts = USUAL_ACCOUNTS;
  const keys = new WalletKeys({
    home,
    settings: { kind: "keystore", url: "", command: [], "timeout-ms": 5_000 },
    chainId: 6_940n,
    limits: {
      gasPriceCapAtoken: 10n ** 9n,
      gasLimitMax: 1_000_000n,
      feePerPayoutAtoken: 10n ** 17n,
    },
    totals: new SignerTotals(join(home, "signer-totals"), systemClock),
    tokens: [],
    chainAccounts: () => accounts,
    log: silentLog,
  });
  const refusal = () =>
    keys.signerOf(WALLET)?.review([
      {
        withdrawalId: "wd_1",
        customerId: "alice",
        asset: "TOKEN",
        amountUnits: 1n,
        destination: BURN,
        approvals: [],
      },
    ])[0];
  expect(refusal()).toBeUndefined();
  accounts = { ...USUAL_ACCOUNTS, burnAddress: BURN };
  expect(refusal()?.code).toBe("FORBIDDEN_DESTINATION");
  await keys.close();
});
