/** RLP of a Cosmos transaction in a block with what execution made of it. */

import type { AbciEvent } from "../consensus/abci-types.js";
import type { MinedCosmosTransaction } from "../cosmos/cosmos-result.js";
import { decodeCosmosTransaction } from "../cosmos/cosmos-transaction.js";
import type { RlpInput } from "../encoding/rlp-writer.js";
import type { RlpReader } from "../encoding/rlp-reader.js";
import { MAX_WORD } from "../hex.js";
import { changeItem, readAddress, readChange } from "./block-items.js";

const utf8 = (text: string) => Buffer.from(text, "utf8");

/** Fields of a Cosmos transaction. */
export function cosmosItem(mined: MinedCosmosTransaction): RlpInput {
  const { tx, from, index, result, changes } = mined;
  return [
    tx.raw,
    from,
    index,
    [
      result.code,
      utf8(result.codespace),
      utf8(result.log),
      result.data,
      result.gasUsed,
      result.events.map(eventItem),
    ],
    changes.map(changeItem),
  ];
}

/** Fields of an event. */
export function eventItem({ type, attributes }: AbciEvent): RlpInput {
  return [
    utf8(type),
    attributes.map(({ key, value, index }) => [utf8(key), utf8(value), index ? 1 : 0]),
  ];
}

/** Reads a Cosmos transaction of a block as it is stored. */
export function readCosmosTransaction(reader: RlpReader): MinedCosmosTransaction {
  return readMined(reader, Number.POSITIVE_INFINITY);
}

/** The same without events and balance changes; refuses one that has some. Throws INVALID_RLP. */
export function readProvableCosmosTransaction(reader: RlpReader): MinedCosmosTransaction {
  return readMined(reader, 0);
}

function readMined(reader: RlpReader, mostUnproven: number): MinedCosmosTransaction {
  return reader.list(() => ({
    tx: decodeCosmosTransaction(reader.bytes(), { isTaken: true }),
    from: readAddress(reader),
    index: reader.number(),
    result: reader.list(() => ({
      code: reader.number(),
      codespace: reader.text("utf8"),
      log: reader.text("utf8"),
      data: reader.bytes(),
      gasUsed: reader.integer(),
      events: reader.items(readEvent, mostUnproven),
    })),
    // Older releases recorded moves of more than a word, which have failed and are of no use to anybody.
    changes: reader
      .items(readChange, mostUnproven)
      .filter(({ amountAtoken }) => amountAtoken <= MAX_WORD),
  }));
}

/** Reads an event. */
export function readEvent(reader: RlpReader): AbciEvent {
  return reader.list(() => ({
    type: reader.text("utf8"),
    attributes: reader.items(readAttribute),
  }));
}

function readAttribute(reader: RlpReader): AbciEvent["attributes"][number] {
  return reader.list(() => ({
    key: reader.text("utf8"),
    value: reader.text("utf8"),
    index: reader.number() === 1,
  }));
}
