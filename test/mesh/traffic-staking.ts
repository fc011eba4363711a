/**
 * Stake as seeded acts on a kit: delegated, moved, leaving, brought back and withdrawn, with calls that
 * fail, and with a second validator that never signs and is slashed.
 */
import { generateKeyPairSync } from "node:crypto";
import fs from "node:fs";
import { Interface, Wallet } from "ethers";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../chain/address.js";
import type { Sender } from "../helpers/exchange/chain.js";
import type { RunningKit } from "../helpers/kit.js";
import { until } from "../helpers/until.js";
import { type Act, type Stage, TOKEN, type TrafficReport, playActs } from "./traffic.js";

const STAKING = "0x0000000000000000000000000000000000000800";
const DISTRIBUTION = "0x0000000000000000000000000000000000000801";

/** An interface as it is published. */
function published(name: string): Interface {
  return new Interface(JSON.parse(fs.readFileSync(`contracts/artifacts/${name}.json`, "utf8")).abi);
}

const staking = published("IStaking");
const distribution = published("IDistribution");

/** Parameters of a kit's genesis in whose time all of it happens. */
export const STAKING_PARAMS = {
  "staking.unbonding_time": "5s",
  "slashing.signed_blocks_window": "10",
  "slashing.downtime_jail_duration": "1s",
  "distribution.community_tax": "0.02",
} as const;

/** A validator's operator as contracts name it. */
function operatorText(address: string): string {
  return toBech32(parseAddress(address.toLowerCase()), VALIDATOR_PREFIX);
}

const GAS = 2_000_000n;

function act(kind: string, from: Sender, to: string, data: string, fails = false): Act {
  return { kind, from, request: { to, data, gasLimit: GAS }, fails };
}

/** Plays all of it; returns when the second validator is jailed and everything has left. */
export async function playStaking(
  kit: RunningKit,
  stage: Stage,
  report: TrafficReport,
): Promise<void> {
  const first = operatorText(new Wallet(kit.key("operator.key")).address);
  const [operator, ...others] = stage.senders;
  if (operator === undefined) throw new Error("no sender");
  const second = operatorText(operator.wallet.address);
  const on = (name: string, ...args: readonly unknown[]) => staking.encodeFunctionData(name, args);
  const of = (name: string, ...args: readonly unknown[]) =>
    distribution.encodeFunctionData(name, args);
  const key = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" }).x ?? "";
  const publicKey = Buffer.from(key, "base64url").toString("base64");
  const rates = [TOKEN / 10n, TOKEN / 5n, TOKEN / 100n];
  const texts = ["silent", "", "", "", ""];
  const { address } = operator.wallet;
  const registered = on("createValidator", texts, rates, 1n, address, publicKey, 2n * TOKEN);
  const amount = () => BigInt(1 + stage.random.integer(1_000_000)) * 10n ** 12n;
  const play = (acts: readonly Act[]) => playActs(stage, acts, report);
  await play([act("register", operator, STAKING, registered)]);
  await play(
    others.flatMap((one) =>
      [first, second].map((to) => {
        return act("delegate", one, STAKING, on("delegate", one.wallet.address, to, amount()));
      }),
    ),
  );
  const left = await play(
    others.flatMap((one) => {
      const { address: own } = one.wallet;
      return [
        act("undelegate", one, STAKING, on("undelegate", own, second, 10n ** 12n)),
        act("redelegate", one, STAKING, on("redelegate", own, second, first, 10n ** 11n)),
        act(
          "undelegate of too much",
          one,
          STAKING,
          on("undelegate", own, first, TOKEN ** 2n),
          true,
        ),
        act("withdraw", one, DISTRIBUTION, of("withdrawDelegatorRewards", own, first)),
      ];
    }),
  );
  const [one] = others;
  const [begun] = left;
  if (one === undefined || begun === undefined) throw new Error("nothing has begun to leave");
  const own = one.wallet.address;
  const back = on("cancelUnbondingDelegation", own, second, 10n ** 11n, begun.blockNumber);
  await stage.chain.mined(await one.send([{ to: STAKING, data: back, gasLimit: GAS }]));
  await until(() => isJailed(stage, address), {
    timeoutMs: 120_000,
    what: "the silent validator is jailed",
  });
  await play([
    act("commission", operator, DISTRIBUTION, of("withdrawValidatorCommission", second)),
    ...others.map((each) =>
      act("undelegate", each, STAKING, on("undelegate", each.wallet.address, second, 10n ** 11n)),
    ),
  ]);
  // By then all that was leaving has come back, the slashes taken.
  await stage.chain.blocksPass(40);
}

async function isJailed({ chain }: Stage, operator: string): Promise<boolean> {
  const data = staking.encodeFunctionData("validator", [operator]);
  const answer = await chain.provider.send("eth_call", [{ to: STAKING, data }, "latest"]);
  const [record] = staking.decodeFunctionResult("validator", answer);
  return record[2];
}
