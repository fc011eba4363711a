/** A validator that does not sign, as wallets and explorers see it: jailed, slashed, and back when it asks. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { QueryClient, setupDistributionExtension, setupStakingExtension } from "@cosmjs/stargate";
import { Comet38Client } from "@cosmjs/tendermint-rpc";
import { Wallet } from "ethers";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import { StakedNode } from "../../helpers/cosmos/staked-node.js";
import { until } from "../../helpers/until.js";

const TOKEN = 10n ** 18n;
const joiner = new Wallet(`0x${"77".repeat(32)}`);
const joinerOperator = toBech32(parseAddress(joiner.address), VALIDATOR_PREFIX);

let node: StakedNode;
let operator: string;

/** CosmJS' client for queries with the extensions for these modules. */
async function queries() {
  const comet = await Comet38Client.connect(node.url("cometRpc"));
  return QueryClient.withExtensions(comet, setupStakingExtension, setupDistributionExtension);
}

let query: Awaited<ReturnType<typeof queries>>;

/** Blocks after which who does not sign is jailed, once the test says so. */
const SHORT_WINDOW = 20;

beforeAll(async () => {
  node = await StakedNode.startUnhurried();
  query = await queries();
  const { validators } = await query.staking.validators("BOND_STATUS_BONDED");
  operator = validators[0]?.operatorAddress ?? "";
  const made = await node.joinValidator(joiner.privateKey);
  expect([made.code, made.raw_log]).toEqual([0, ""]);
  await node.done("staking", "delegate", operator, `${5n * TOKEN}atoken`);
  await node.done("staking", "delegate", joinerOperator, `${2n * TOKEN}atoken`);
});

afterAll(() => node?.close());

/** The chain decides that who does not sign is jailed within some blocks. */
async function shortenWindow(): Promise<void> {
  const { body } = await node.get("/cosmos/slashing/v1beta1/params");
  const { params } = body as { params: object };
  const message = {
    "@type": "/cosmos.slashing.v1beta1.MsgUpdateParams",
    authority: toBech32(parseAddress(`0x${"00".repeat(18)}0805`)),
    params: { ...params, signed_blocks_window: `${SHORT_WINDOW}` },
  };
  const words = { metadata: "none", deposit: "1000atoken", title: "Watch", summary: "Short" };
  const file = node.write("window.json", JSON.stringify({ messages: [message], ...words }));
  await node.done("gov", "submit-proposal", file);
  const voted = await node.tx("gov", "vote", "1", "yes", "--from", "operator");
  expect([voted.code, voted.raw_log]).toEqual([0, ""]);
  node.passHour();
}

describe("a validator that does not sign", () => {
  it("is shown as jailed everywhere, loses stake, and comes back when it asks", async () => {
    const route = `/cosmos/staking/v1beta1/validators/${joinerOperator}`;
    const state = async (height?: number) =>
      ((await node.get(route, height)).body as { validator: { jailed: boolean; status: string } })
        .validator;
    expect(await state()).toMatchObject({ jailed: false, status: "BOND_STATUS_BONDED" });
    await shortenWindow();
    await until(async () => (await state()).jailed, { timeoutMs: 60_000, what: "the jail" });
    expect((await state()).status).toBe("BOND_STATUS_UNBONDING");
    const list = async (status: string) => {
      const { validators } = await query.staking.validators(status as "BOND_STATUS_BONDED");
      return validators.map(({ operatorAddress }) => operatorAddress);
    };
    expect(await list("BOND_STATUS_BONDED")).toEqual([operator]);
    expect(await list("BOND_STATUS_UNBONDING")).toEqual([joinerOperator]);
    expect(await list("BOND_STATUS_UNBONDED")).toEqual([]);
    const slashes = await query.distribution.validatorSlashes(joinerOperator, 0, 1_000_000);
    expect(slashes.slashes).toEqual([{ validatorPeriod: 1n, fraction: "10000000000000000" }]);
    const { validator } = await query.staking.validator(joinerOperator);
    expect(validator.tokens).toBe(`${(3n * TOKEN * 99n) / 100n}`);
    // 26657 and the sets of REST follow two heights later.
    const height = await node.height();
    await until(async () => (await node.height()) > height + 2, { timeoutMs: 30_000 });
    const comet = (await (await fetch(`${node.url("cometRpc")}/validators`)).json()) as {
      result: { validators: { voting_power: string }[] };
    };
    const { validators } = (await node.get("/cosmos/base/tendermint/v1beta1/validatorsets/latest"))
      .body as { validators: { voting_power: string }[] };
    const bonded = await query.staking.validator(operator);
    const power = `${BigInt(bonded.validator.tokens) / TOKEN}`;
    expect(comet.result.validators.map(({ voting_power: own }) => own)).toEqual([power]);
    expect(validators.map(({ voting_power: own }) => own)).toEqual([power]);

    const keyFile = `${node.folder}/joiner.key`;
    const unjail = ["slashing", "unjail", "--from", keyFile];
    await until(
      async () => {
        const { code, err } = await node.run("tx", ...unjail, "--dry-run");
        if (code !== 0) expect(err).toContain("validator still jailed; cannot be unjailed");
        return code === 0;
      },
      { timeoutMs: 30_000, what: "the end of the jail" },
    );
    const back = await node.tx(...unjail);
    expect([back.code, back.raw_log]).toEqual([0, ""]);
    // It still does not sign.
    const atOnce = await state(Number(back.height));
    expect(atOnce).toMatchObject({ jailed: false, status: "BOND_STATUS_BONDED" });
  });
});
