/** 0x806: who signs blocks, and how a jailed validator comes back. */
import type { Address } from "../../../chain/address.js";
import type { AbiValue } from "../../../chain/evm/abi/abi-values.js";
import { moduleParam } from "../../modules/module-params.js";
import { type SigningInfo, signingInfo, unjail } from "../../modules/slashing/signing.js";
import { validatorOf } from "../../modules/staking/delegating.js";
import { Validators } from "../../modules/staking/validator-record.js";
import { abiNative, assertCaller, refusal } from "./abi-native.js";
import { logOf, SLASHING as ABI } from "./native-abis.js";
import { pageOf } from "./pages.js";

const PRECISION = 18n;

/** The contract. */
export const SLASHING = abiNative({
  abi: ABI,
  module: "slashing",
  functions: {
    unjail(args, call) {
      const operator = args.address("validatorAddress");
      assertCaller(operator, call);
      const context = call.context();
      unjail(context, validatorOf(context, operator));
      call.log(logOf(ABI, "ValidatorUnjailed", { validator: operator }));
      return [true];
    },
    getSigningInfo(args, call) {
      const { state, block } = call.host;
      const address = args.address("consAddress");
      const info = signingInfo(state, address);
      if (info === undefined) throw refusal(`SigningInfo not found for validator ${address}`);
      return [infoValue(address, info, block.height)];
    },
    getSigningInfos(args, call) {
      const { state, block } = call.host;
      const all = new Validators(state).all().flatMap(({ consensusAddress }) => {
        const info = signingInfo(state, consensusAddress);
        return info === undefined ? [] : [infoValue(consensusAddress, info, block.height)];
      });
      const { items, response } = pageOf(all, args.struct("pagination"));
      return [items, response];
    },
    getParams(_args, { host: { state } }) {
      const fraction = (
        name: "min_signed_per_window" | "slash_fraction_double_sign" | "slash_fraction_downtime",
      ) => ({ value: moduleParam(state, "slashing", name), precision: PRECISION });
      return [
        {
          signedBlocksWindow: moduleParam(state, "slashing", "signed_blocks_window"),
          minSignedPerWindow: fraction("min_signed_per_window"),
          downtimeJailDuration: moduleParam(state, "slashing", "downtime_jail_duration") / 1_000n,
          slashFractionDoubleSign: fraction("slash_fraction_double_sign"),
          slashFractionDowntime: fraction("slash_fraction_downtime"),
        },
      ];
    },
  },
});

function infoValue(validatorAddress: Address, info: SigningInfo, height: number): AbiValue {
  return {
    validatorAddress,
    startHeight: BigInt(info.startHeight),
    indexOffset: BigInt(Math.max(0, height - info.startHeight)),
    jailedUntil: BigInt(Math.floor(info.jailedUntilMs / 1_000)),
    tombstoned: info.isTombstoned,
    missedBlocksCounter: BigInt(info.missedBlocks),
  };
}
