/** RLP of a Cosmos transaction in a block with what execution made of it. */
import { addressToBytes, bytesToAddress } from "../../chain/address.js";
import type { AbciEvent } from "../../chain/consensus/abci-types.js";
import type { MinedCosmosTransaction } from "../../chain/cosmos/cosmos-result.js";
import { decodeCosmosTransaction } from "../../chain/cosmos/cosmos-transaction.js";
import {
  type RlpInput,
  type RlpItem,
  rlpBytes,
  rlpInteger,
  rlpList,
} from "../../chain/encoding/rlp.js";
import { changeItem, decodeChange, integer, safeInteger } from "./block-codec.js";

const utf8 = (text: string) => Buffer.from(text, "utf8");
const textOf = (item: RlpItem | undefined) => Buffer.from(rlpBytes(item)).toString("utf8");

/** Fields of a Cosmos transaction. */
export function cosmosItem(mined: MinedCosmosTransaction): RlpInput {
  const { tx, from, index, result, changes } = mined;
  return [
    tx.raw,
    addressToBytes(from),
    integer(index),
    [
      integer(result.code),
      utf8(result.codespace),
      utf8(result.log),
      result.data,
      integer(result.gasUsed),
      result.events.map(eventItem),
    ],
    changes.map(changeItem),
  ];
}

/** Fields of an event. */
export function eventItem({ type, attributes }: AbciEvent): RlpInput {
  return [
    utf8(type),
    attributes.map(({ key, value, index }) => [utf8(key), utf8(value), integer(index ? 1 : 0)]),
  ];
}

/** Reads a Cosmos transaction of a block. */
export function decodeCosmosItem(item: RlpItem | undefined): MinedCosmosTransaction {
  const [raw, from, index, result, changes] = rlpList(item);
  const [code, codespace, log, data, gasUsed, events] = rlpList(result);
  return {
    tx: decodeCosmosTransaction(rlpBytes(raw), { isTaken: true }),
    from: bytesToAddress(rlpBytes(from)),
    index: safeInteger(index),
    result: {
      code: safeInteger(code),
      codespace: textOf(codespace),
      log: textOf(log),
      data: rlpBytes(data),
      gasUsed: rlpInteger(gasUsed),
      events: rlpList(events).map(decodeEvent),
    },
    changes: rlpList(changes).map(decodeChange),
  };
}

/** Reads an event. */
export function decodeEvent(item: RlpItem): AbciEvent {
  const [type, attributes] = rlpList(item);
  return {
    type: textOf(type),
    attributes: rlpList(attributes).map((attribute) => {
      const [key, value, index] = rlpList(attribute);
      return { key: textOf(key), value: textOf(value), index: safeInteger(index) === 1 };
    }),
  };
}
