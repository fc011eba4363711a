/**
 * Random programs of nested calls, in which contracts stake, unstake, move, claim and pay each other
 * and any frame may fail: coins are conserved, books and balances agree, both engines do the same.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Interface } from "ethers";
import type { Address } from "../../../../chain/address.js";
import { communityPool, validatorRewards } from "../../../../node/modules/distribution/rewards.js";
import { Delegations, ENTRY_KIND } from "../../../../node/modules/staking/delegation-record.js";
import { Validators } from "../../../../node/modules/staking/validator-record.js";
import { MODULE_ACCOUNTS } from "../../../../node/modules/system-storage.js";
import { accountOf, NativeChain, operatorText } from "../../../helpers/chains/native-chain.js";
import { createRandom } from "../../../helpers/random.js";
import { compileFixture } from "../../../helpers/solidity.js";

const BLOCKS = Number(process.env["CAUSEWAY_PROGRAMS"] ?? 12);
const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 1);
const TOKEN = 10n ** 18n;
const { Runner } = compileFixture("NativeCallers.sol");
if (Runner === undefined) throw new Error("not compiled");
const abi = new Interface(Runner.abi);
console.log(
  `native programs: seed ${SEED}, ${BLOCKS} blocks (CAUSEWAY_TEST_SEED, CAUSEWAY_PROGRAMS)`,
);

let chain: NativeChain;
let runners: Address[];

beforeAll(async () => {
  chain = await NativeChain.open({ "staking.unbonding_time": "6s", "staking.max_entries": "3" });
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
  const pool = chain.balance(chain.chain.genesis.params.validatorsPool);
  expect([what, claims <= pool]).toEqual([what, true]);
}

describe("random programs over the chain's contracts", () => {
  it("conserve coins, keep the books, and come to the same on both engines", async () => {
    const random = createRandom(SEED);
    const seen = { delegated: 0, undone: 0, claimed: 0, failed: 0 };
    for (let block = 0; block < BLOCKS; block++) {
      const sent = Array.from({ length: 3 }, () => {
        const steps = Array.from({ length: 4 + random.integer(8) }, () => [
          [0, 0, 1, 2, 3, 4, 5, 6, 7, 7, 7][random.integer(11)] ?? 0,
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
      const changes = committed.journal.transactions.flatMap((one) => one.changes);
      for (const { reason, effective } of changes) {
        if (reason === "DELEGATE" && effective) seen.delegated++;
        if (reason === "DELEGATE" && !effective) seen.undone++;
        if (reason === "CLAIM" && effective) seen.claimed++;
      }
      seen.failed += committed.receipts.filter(({ status }) => status === 0).length;
    }
    // The programs must do all of it, else they show nothing.
    for (const [what, count] of Object.entries(seen))
      expect([what, count > 0]).toEqual([what, true]);
  });
});
