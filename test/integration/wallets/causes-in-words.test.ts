/**
 * Causes of a wallet's freeze stand in one text, beside what operators type. Whoever types or pastes what the
 * kit writes of lost nonces says nothing about nonces by it.
 */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import {
  freezeBehindChain,
  freezeSigning,
  readBehind,
  readFreeze,
  releaseBehindChain,
  releaseSigning,
} from "../../../ledger/requests/signing-freeze.js";
import { createHotWallet, readHotWallet } from "../../../ledger/wallets/wallet-lease.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";
import {
  openTestLedger,
  registerTestWallets,
  type TestLedger,
} from "../../helpers/services/ledger.js";

const [WALLET, OTHER] = [testAddress(1), testAddress(2)];

/** As the kit writes it. */
const sentence = (seen: number, known: number) =>
  `the chain knows nonces below ${seen}, the ledger only below ${known}: ` +
  "the key was used elsewhere, or the ledger comes from an older backup";

const SENTENCE = sentence(17, 3);

let ledger: TestLedger;

beforeEach(async () => {
  ledger = await openTestLedger();
  await registerTestWallets(ledger.owner, WALLET, OTHER);
  for (const wallet of [WALLET, OTHER]) {
    await createHotWallet(ledger.owner, { wallet, firstNonce: 3n });
  }
});
afterEach(() => ledger.drop());

/** As a look at the chain does that has read the wallet before. */
async function show(seen: bigint): Promise<boolean> {
  const row = await readHotWallet(ledger.owner, WALLET);
  return freezeBehindChain(ledger.database, { wallet: WALLET, seen, known: 3n, ...row });
}

const reason = async () => (await readFreeze(ledger.database, WALLET)).reason;

describe.each([
  ["a part of it", "we saw: the chain knows nonces below 17"],
  ["a part of it alone", "the chain knows nonces below 17, the ledger only below 3"],
  ["it, with words before", `as the other wallet says: ${SENTENCE}`],
  ["it, with words behind", `${SENTENCE}: see the ticket`],
  ["it alone", SENTENCE],
  ["it among causes", `leaked; also: ${SENTENCE}; also: see the ticket`],
  ["it as it stands behind a release", `an operator released it: ${SENTENCE}`],
])("%s, typed as a reason", (_case, typed) => {
  beforeEach(async () => {
    expect(await freezeSigning(ledger.database, WALLET, typed)).toBe(true);
  });

  it("is read, and stops no other wallet", async () => {
    expect(await reason()).toContain("the chain knows nonces below 17");
    expect((await readFreeze(ledger.database, OTHER)).behindElsewhere).toBeUndefined();
    expect(await readBehind(ledger.database)).toBeUndefined();
  });

  it("hides no nonces that are lost", async () => {
    expect(await show(5n)).toBe(true);
    expect(await reason()).toContain(`; also: ${sentence(5, 3)}`);
    expect((await readFreeze(ledger.database, OTHER)).behindElsewhere).toContain("below 5");
    expect(await show(17n)).toBe(true);
    expect(await reason()).toContain(`; also: ${SENTENCE}`);
    expect(await show(17n)).toBe(false);
  });

  it("lets none go on with its release", async () => {
    const before = await readHotWallet(ledger.owner, WALLET);
    expect(await releaseSigning(ledger.database, WALLET)).toBe(true);
    const behind = { wallet: WALLET, seen: 5n, known: 3n, released: before?.released };
    expect(await freezeBehindChain(ledger.database, behind)).toBe(true);
    expect(await reason()).toBe(sentence(5, 3));
  });

  it("is lifted by no recovery", async () => {
    await releaseBehindChain(ledger.owner, WALLET);
    expect(await readFreeze(ledger.database, WALLET)).toMatchObject({ frozen: true });
  });
});

it("stays named behind a long cause, and before many", async () => {
  await freezeSigning(ledger.database, WALLET, "x".repeat(1_000));
  expect(await show(17n)).toBe(true);
  for (const cause of ["the second", "the third"]) {
    expect(await freezeSigning(ledger.database, WALLET, cause)).toBe(true);
  }
  expect(await reason()).toBe(`${"x".repeat(1_000)}; also: ${SENTENCE}; also: the third`);
  expect(await readBehind(ledger.database)).toContain("below 17");
});

it("is let go by its release, up to what it names", async () => {
  await freezeSigning(ledger.database, WALLET, "the key leaked");
  await show(5n);
  await show(17n);
  const shown = { wallet: WALLET, known: 3n };
  expect(await releaseSigning(ledger.database, WALLET)).toBe(true);
  expect(await freezeBehindChain(ledger.database, { ...shown, seen: 17n })).toBe(false);
  expect(await freezeBehindChain(ledger.database, { ...shown, seen: 18n })).toBe(true);
});

it("is the one cause that a recovery takes away", async () => {
  await show(17n);
  await releaseBehindChain(ledger.owner, WALLET);
  expect(await readFreeze(ledger.database, WALLET)).toMatchObject({ frozen: false });
  await show(17n);
  await freezeSigning(ledger.database, WALLET, "the key leaked");
  await releaseBehindChain(ledger.owner, WALLET);
  expect(await readFreeze(ledger.database, WALLET)).toMatchObject({ frozen: true });
});
