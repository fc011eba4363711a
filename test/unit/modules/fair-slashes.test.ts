/**
 * One validator signs twice. Until the proof comes its delegators move their stake in every way, at random;
 * then each has lost the slashed part of what was at fault, once, wherever it had gone.
 */
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import type { ModuleContext } from "../../../node/modules/module-context.js";
import { punish } from "../../../node/modules/slashing/signing.js";
import {
  cancelUnbonding,
  delegate,
  redelegate,
  undelegate,
  validatorOf,
} from "../../../node/modules/staking/delegating.js";
import { Delegations, ENTRY_KIND } from "../../../node/modules/staking/delegation-record.js";
import { tokensOf } from "../../../node/modules/staking/shares.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";
import { createRandom, type Random } from "../../helpers/random.js";

const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 20_261_125);
const CHAINS = 40;
const TOKEN = 10n ** 18n;
const STAKE = 100n * TOKEN;
const [GUILTY, SECOND, THIRD] = [accountAt(0), accountAt(1), accountAt(2)];
const OPERATORS = [GUILTY, SECOND, THIRD];
const PEOPLE = [accountAt(11), accountAt(12), accountAt(13)];
/** Roundings that may take an atoken each. */
const DUST = 1_000n;

/** Something that a person does with stake; what is refused changes nothing. */
function act(random: Random, person: Address): (context: ModuleContext) => void {
  const amountAtoken = BigInt(1 + random.integer(100)) * TOKEN;
  const [from, to] = [random.pick(OPERATORS), random.pick([SECOND, THIRD])];
  return random.pick<(context: ModuleContext) => void>([
    (context) => void undelegate(context, person, validatorOf(context, from), amountAtoken),
    (context) => {
      const route = { source: validatorOf(context, from), destination: validatorOf(context, to) };
      redelegate(context, person, route, amountAtoken);
    },
    (context) => {
      const entries = new Delegations(context.state)
        .entriesOf(person)
        .filter(({ kind }) => kind === ENTRY_KIND.unbonding);
      if (entries.length === 0) return;
      const { source, height, amountAtoken: most } = random.pick(entries);
      const part = random.pick([most, most / 2n || 1n, most / 5n || 1n]);
      const terms = { amountAtoken: part, height };
      cancelUnbonding(context, person, validatorOf(context, source), terms);
    },
  ]);
}

/** Coins of a person, staked or not. */
function wealth(chain: ModuleChain, person: Address): bigint {
  const delegations = new Delegations(chain.state);
  const staked = OPERATORS.map((operator) =>
    tokensOf(validatorOf(chain.context(), operator), delegations.shares(operator, person)),
  );
  return staked.reduce((sum, one) => sum + one, chain.balance(person));
}

describe("stake of a validator that has signed twice", () => {
  it("loses its part once, wherever it went before the proof", () => {
    for (let seed = SEED; seed < SEED + CHAINS; seed += 1) {
      const random = createRandom(seed);
      const chain = new ModuleChain(
        stakedGenesis([1_000, 1_000, 1_000], {
          "staking.unbonding_time": "200s",
          "staking.max_entries": "50",
        }),
      );
      for (const person of PEOPLE) {
        chain.mint(person, STAKE);
        chain.run((context) => {
          delegate(context, person, validatorOf(context, GUILTY), STAKE);
        });
      }
      for (let block = 0; block < 3; block += 1) chain.endBlock();
      const { height } = chain;
      const proofAfter = random.integer(20);
      for (let block = 0; block < 25; block += 1) {
        for (let left = random.integer(4); left > 0; left -= 1) {
          chain.run(act(random, random.pick(PEOPLE)));
        }
        chain.endBlock();
        if (block !== proofAfter) continue;
        chain.run((context) => {
          const { consensusAddress } = validatorOf(context, GUILTY);
          punish(context, [{ consensusAddress, height, power: 1_000_000n }]);
        });
      }
      for (let block = 0; block < 150; block += 1) chain.endBlock();
      for (const person of PEOPLE) {
        const off = wealth(chain, person) - (STAKE * 95n) / 100n;
        expect([seed, person, off < DUST && off > -DUST ? 0n : off]).toEqual([seed, person, 0n]);
      }
    }
  });
});
