/** Addresses that are kept for later: whoever calls one gets its coins and gas back. */
import { assertNoValue, refusal } from "./abi-native.js";
import type { NativeContract } from "./native.js";
import { CALL_GAS, CALL_NS } from "./native-gas.js";

/** Refuses every call. */
export const RESERVED: NativeContract = {
  answer(call) {
    call.charge(CALL_GAS, CALL_NS);
    assertNoValue(call);
    throw refusal("this address is reserved: there is no contract yet");
  },
};
