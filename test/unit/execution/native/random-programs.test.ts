/**
 * Random programs of nested calls, in which contracts stake, unstake, move, claim and pay each other
 * and any frame may fail: coins are conserved, books and balances agree, both engines do the same.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Interface } from "ethers";
import type { Address } from "../../../../chain/address.js";
import { communityPool, validatorRewards } from "../../../../node/modules/distribution/rewards.js";
import { Proposals } from "../../../../node/modules/gov/proposal-record.js";
import { Delegations, ENTRY_KIND } from "../../../../node/modules/staking/delegation-record.js";
import { Validators } from "../../../../node/modules/staking/validator-record.js";
import { MODULE_ACCOUNTS } from "../../../../node/modules/system-storage.js";
import { accountOf, NativeChain, operatorText } from "../../../helpers/chains/native-chain.js";
import { createRandom } from "../../../helpers/random.js";
import { compileFixture } from "../../../helpers/contracts/solidity.js";

const BLOCKS = Number(process.env["CAUSEWAY_PROGRAMS"] ?? 12);
const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 1);
const TOKEN = 10n ** 18n;
const { Runner } = compileFixture("NativeCallers.sol");
if (Runner === undefined) throw new Error("not compiled");
const abi = new Interface(Runner.abi);
console.log(
  `native programs: seed ${SEED}, ${BLOCKS} blocks (CAUSEWAY_TEST_SEED, CAUSEWAY_PROGRAMS)`,
);

/** What programs do, as `Runner` in the fixture has it; 7 is a frame of its own. */
const STEPS = [0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 8, 8, 8, 9, 9, 10, 11, 12, 13, 14];

let chain: NativeChain;
let runners: Address[];

beforeAll(async () => {
  chain = await NativeChain.open({
    "staking.unbonding_time": "6s",
    "staking.max_entries": "3",
    "gov.min_deposit": (TOKEN / 5n).toString(),
    "gov.max_deposit_period": "8s",
    "gov.voting_period": "6s",
  });
  const names = [[operatorText(0), operatorText(1)]];
  const creation = Runner.bytecode + abi.encodeDeploy(names).slice(2);
  runners = [];
  for (let index = 0; index < 3; index++) {
    runners.push(await chain.deploy(creation, { value: 5n * TOKEN, gasLimit: 6_000_000n }));
  }
  const data = abi.encodeFunctionData("meet", [runners]);
  await chain.mine(...runners.map((to) => ({ to, data })));
});

afterAll(() => chain.close());

/** What the modules owe is what their accounts hold. */
function assertBooks(what: string): void {
  const state = chain.state();
  const validators = new Validators(state);
  const delegations = new Delegations(state);
  let staked = 0n;
  let claims = communityPool(state);
  const leaving = new Map<bigint, bigint>();
  for (const validator of validators.all()) {
    staked += validator.tokens;
    const shares = delegations
      .delegatorsOf(validator.operator)
      .reduce((sum, each) => sum + delegations.shares(validator.operator, each), 0n);
    expect([what, shares]).toEqual([what, validator.shares]);
    const { delegatorsAtoken, commissionAtoken } = validatorRewards(state, validator);
    claims += delegatorsAtoken + commissionAtoken;
    for (const each of [...runners, accountOf(0), accountOf(1)]) {
      for (const entry of delegations.entriesOf(each)) {
        if (entry.kind === ENTRY_KIND.unbonding) leaving.set(entry.id, entry.amountAtoken);
      }
    }
  }
  const out = [...leaving.values()].reduce((sum, amountAtoken) => sum + amountAtoken, 0n);
  expect([what, chain.balance(MODULE_ACCOUNTS.staking)]).toEqual([what, staked + out]);
  const held = new Proposals(state).heldAtoken;
  expect([what, chain.balance(MODULE_ACCOUNTS.gov)]).toEqual([what, held]);
  const pool = chain.balance(chain.chain.genesis.params.validatorsPool);
  expect([what, claims <= pool]).toEqual([what, true]);
}

describe("random programs over the chain's contracts", () => {
  it("conserve coins, keep the books, and come to the same on both engines", async () => {
    const random = createRandom(SEED);
    const seen = { delegated: 0, undone: 0, claimed: 0, deposited: 0, refunded: 0, failed: 0 };
    for (let block = 0; block < BLOCKS; block++) {
      const sent = Array.from({ length: 3 }, () => {
        const steps = Array.from({ length: 4 + random.integer(8) }, () => [
          STEPS[random.integer(STEPS.length)] ?? 0,
          random.integer(256),
          random.integer(256),
        ]);
        const program = `0x${Buffer.from(steps.flat()).toString("hex")}`;
        const end = random.integer(6) === 0 ? 1 + random.integer(2) : 0;
        return {
          from: 2 + random.integer(2),
          to: runners[random.integer(runners.length)] ?? null,
          data: abi.encodeFunctionData("run", [program, end]),
          value: BigInt(random.integer(3)) * 10n ** 15n,
          gasLimit: BigInt([400_000, 1_500_000, 6_000_000][random.integer(3)] ?? 0),
        };
      });
      const { own, library, committed } = await chain.mine(...sent);
      expect({ block, ...library }).toEqual({ block, ...own });
      assertBooks(`block ${block} of seed ${SEED}`);
      const { journal } = committed;
      const changes = journal.transactions.flatMap((one) => one.changes);
      for (const { reason, effective } of changes) {
        if (reason === "DELEGATE" && effective) seen.delegated++;
        if (reason === "DELEGATE" && !effective) seen.undone++;
        if (reason === "CLAIM" && effective) seen.claimed++;
        if (reason === "GOV_DEPOSIT" && effective) seen.deposited++;
      }
      seen.refunded += journal.blockChanges.filter(({ reason }) => reason === "GOV_REFUND").length;
      seen.failed += committed.receipts.filter(({ status }) => status === 0).length;
    }
    // The programs must do all of it, else they show nothing.
    for (const [what, count] of Object.entries(seen))
      expect([what, count > 0]).toEqual([what, true]);
  });
});
