/** Validators that miss blocks or sign twice: what they lose, and who may come back. */
import { describe, expect, it } from "@jest/globals";
import type { ModuleContext } from "../../../node/modules/module-context.js";
import { signingInfo, unjail } from "../../../node/modules/slashing/signing.js";
import { delegate, undelegate, validatorOf } from "../../../node/modules/staking/delegating.js";
import { Delegations } from "../../../node/modules/staking/delegation-record.js";
import { Validators } from "../../../node/modules/staking/validator-record.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";

const TOKEN = 10n ** 18n;
const SILENT = accountAt(1);

function newChain(): ModuleChain {
  return new ModuleChain(
    stakedGenesis([40, 100, 60], {
      "slashing.signed_blocks_window": "10",
      "slashing.min_signed_per_window": "0.5",
      "slashing.downtime_jail_duration": "30s",
      "slashing.slash_fraction_downtime": "0.01",
      "slashing.slash_fraction_double_sign": "0.05",
    }),
  );
}

/** A block that all of the set have signed but those who are silent. */
function block(chain: ModuleChain, silent: boolean, seconds = 1) {
  const votes = new Validators(chain.state).inConsensus().map((one) => ({
    consensusAddress: one.consensusAddress,
    power: one.consensusPower,
    isSigned: !silent || one.operator !== SILENT,
  }));
  return chain.endBlock({ facts: { votes }, seconds });
}

const validator = (chain: ModuleChain) => new Validators(chain.state).of(SILENT);

describe("a validator that is silent", () => {
  it("is jailed for more than half of a window, once, and comes back when its time is over", () => {
    const chain = newChain();
    for (let height = 1; height <= 12; height++) expect(block(chain, false)).toEqual([]);
    for (let missed = 1; missed <= 5; missed++) expect(block(chain, true)).toEqual([]);
    expect(signingInfo(chain.state, validator(chain).consensusAddress)?.missedBlocks).toBe(5);
    // The sixth of ten is one too many.
    const updates = block(chain, true);
    expect(updates).toEqual([{ publicKey: validator(chain).publicKey, power: 0n }]);
    expect(validator(chain).tokens).toBe(99n * TOKEN);
    expect(chain.burnedAtoken).toBe(TOKEN);
    const jailed = chain.events.filter(({ type }) => type === "slash");
    expect(jailed.map(({ values }) => values["reason"])).toEqual(["missing_signature"]);
    // Out of the set nobody counts its votes: it is not slashed again.
    for (let more = 0; more < 20; more++) block(chain, true);
    expect(validator(chain).tokens).toBe(99n * TOKEN);
    const back = () => chain.run((context) => unjail(context, validatorOf(context, SILENT)));
    expect(back()?.fault).toMatchObject({ codespace: "slashing", code: 4 });
    block(chain, false, 30);
    expect(back()).toBeUndefined();
    expect(back()?.fault).toMatchObject({ codespace: "slashing", code: 5 });
    expect(block(chain, false)).toEqual([{ publicKey: validator(chain).publicKey, power: 99n }]);
    // What it missed before is forgotten.
    for (let height = 1; height <= 12; height++) block(chain, height % 2 === 0);
    expect(validator(chain).isJailed).toBe(false);
  });
});

describe("a validator that signed twice", () => {
  it("is slashed once, by its power of then, and never comes back", () => {
    const chain = newChain();
    block(chain, false);
    const { consensusAddress } = validator(chain);
    const misbehavior = [{ consensusAddress, height: 1, power: 80n }];
    const updates = chain.endBlock({ facts: { misbehavior: [...misbehavior, ...misbehavior] } });
    expect(updates).toEqual([{ publicKey: validator(chain).publicKey, power: 0n }]);
    expect(validator(chain).tokens).toBe(96n * TOKEN);
    expect(signingInfo(chain.state, consensusAddress)?.isTombstoned).toBe(true);
    chain.endBlock({ facts: { misbehavior }, seconds: 1_000_000_000 });
    expect(validator(chain).tokens).toBe(96n * TOKEN);
    const failure = chain.run((context) => unjail(context, validatorOf(context, SILENT)));
    expect(failure?.fault).toMatchObject({ codespace: "slashing", code: 4 });
  });
});

describe("a validator that left the set and comes back", () => {
  /** It missed five of ten blocks, one less than too many, and then left by its own stake. */
  function leftChain(chain: ModuleChain): ModuleChain {
    for (let height = 1; height <= 15; height++) block(chain, height > 10);
    const leave = (context: ModuleContext) => {
      undelegate(context, SILENT, validatorOf(context, SILENT), 100n * TOKEN);
    };
    expect(chain.run(leave)).toBeUndefined();
    expect(block(chain, false)).toMatchObject([{ power: 0n }]);
    for (let height = 1; height <= 30; height++) block(chain, false);
    const { height } = new Delegations(chain.state).entriesOf(SILENT)[0] ?? {};
    const back = (context: ModuleContext) => {
      unjail(context, validatorOf(context, SILENT));
    };
    const stay = (context: ModuleContext) => {
      delegate(context, SILENT, validatorOf(context, SILENT), 100n * TOKEN);
    };
    expect(height).toBe(15);
    chain.mint(SILENT, 100n * TOKEN);
    expect(chain.run(stay)).toBeUndefined();
    expect(chain.run(back)).toBeUndefined();
    expect(block(chain, false)).toMatchObject([{ power: 100n }]);
    return chain;
  }

  it("is not slashed for the first block that it misses: what it missed then is forgotten", () => {
    const chain = leftChain(newChain());
    expect(signingInfo(chain.state, validator(chain).consensusAddress)).toMatchObject({
      startHeight: chain.height,
      missedBlocks: 0,
    });
    for (let missed = 1; missed <= 5; missed++) expect(block(chain, true)).toEqual([]);
    for (let height = 1; height <= 10; height++) expect(block(chain, false)).toEqual([]);
    expect(validator(chain)).toMatchObject({ tokens: 100n * TOKEN, isJailed: false });
    // A whole window later it is held to it like anybody.
    for (let missed = 1; missed <= 5; missed++) expect(block(chain, true)).toEqual([]);
    expect(block(chain, true)).toMatchObject([{ power: 0n }]);
  });

  it("is slashed for it by version 1 of the rules", () => {
    const { appVersion: _newest, ...first } = newChain().genesis;
    const chain = leftChain(new ModuleChain(first));
    expect(block(chain, true)).toMatchObject([{ power: 0n }]);
    expect(validator(chain)).toMatchObject({ tokens: 99n * TOKEN, isJailed: true });
  });
});
