/**
 * Checks the proofs that the explorer serves (`/proof/address/…`, `/proof/tx/…`) against a header
 * that the reader trusts. No page and no network in here: who calls it gives the source of headers.
 */
import { check, decodeRlp, fromHex, NotProven, same, splitRlp, toBigint, toHex } from "./bytes.mjs";
import { assertCanCheck, checkSelf, followFrom, readSigned } from "./headers.mjs";
import { keccak256 } from "./keccak.mjs";
import { provenValue, rootOfList } from "./trie.mjs";

const FORMAT = "causeway-explorer-proof/1";

/** Places of the EVM header's fields. */
const FIELD = {
  stateRoot: 3,
  transactionsRoot: 4,
  receiptsRoot: 5,
  height: 8,
  time: 11,
  count: 15,
};

/** Balance and nonce as they are answered. */
const DECIMAL = /^(0|[1-9][0-9]{0,77})$/;

/**
 * Verifies a proof.
 * @param proof parsed JSON
 * @param pin `{ height, hash }` of the consensus header that the reader trusts
 * @param source `{ header(height), headers(to) }`, both promises of parsed JSON
 * @param expected `{ chainId, nowMs, kind, subject }`; the subject is the address or hash that the
 * reader asked about, in lower case with `0x`
 * @returns what is proven, as texts by name
 * @throws NotProven with the step that does not hold; NothingToCheckWith
 */
export async function verifyProof(proof, pin, source, expected) {
  await assertCanCheck();
  try {
    return await verified(proof, pin, source, expected);
  } catch (error) {
    if (error instanceof NotProven) throw error;
    // Whatever cannot even be read proves nothing.
    throw new NotProven(`it cannot be read: ${error.message}`);
  }
}

async function verified(proof, pin, source, expected) {
  const { chainId, kind, subject } = expected;
  check(proof.format === FORMAT && proof.kind === kind, "it is no proof of this kind");
  check(proof.chainId === chainId, "it is of another chain");
  const signed = await readSigned(proof);
  await checkSelf(signed, chainId);
  await followFrom(pin, signed, source, expected);

  // A transaction's proof has the whole block, an account's the header alone.
  const items = kind === "account" ? [] : splitRlp(fromHex(proof.block));
  const headerBytes = kind === "account" ? fromHex(proof.header) : (items[0]?.encoded ?? []);
  const blockHash = keccak256(headerBytes);
  check(
    same(blockHash, fromHex(signed.header.app_hash)),
    "the signed header names another block than the proof's",
  );
  const header = decodeRlp(headerBytes);
  check(header.length === FIELD.count, "the block's header is malformed");
  const height = Number(toBigint(header[FIELD.height]));
  check(height === proof.height && signed.height === height + 1, "the block has another height");
  const block = {
    height: String(height),
    blockHash: `0x${toHex(blockHash)}`,
    time: new Date(Number(toBigint(header[FIELD.time])) * 1_000).toISOString(),
    signedHeader: `${signed.height} ${toHex(signed.hash).toUpperCase()}`,
  };
  return kind === "account"
    ? { ...block, ...provenAccount(proof, header[FIELD.stateRoot], subject) }
    : { ...block, ...provenReceipt(proof, header, items, subject) };
}

function provenAccount(proof, stateRoot, subject) {
  check(proof.address === subject, "it is of another account");
  const key = keccak256(fromHex(subject));
  const leaf = provenValue(stateRoot, key, proof.accountProof.map(fromHex));
  const [nonce, balance] =
    leaf === undefined ? [0n, 0n] : accountFields(leaf).slice(0, 2).map(toBigint);
  check(DECIMAL.test(proof.balance) && DECIMAL.test(proof.nonce), "the answer is malformed");
  check(BigInt(proof.balance) === balance, "the balance is another one than the state's");
  check(BigInt(proof.nonce) === nonce, "the nonce is another one than the state's");
  return { address: subject, balanceAtoken: balance.toString(), nonce: nonce.toString() };
}

function accountFields(leaf) {
  const fields = decodeRlp(leaf);
  check(Array.isArray(fields) && fields.length === 4, "the account's record is malformed");
  return fields;
}

function provenReceipt(proof, header, items, subject) {
  check(items.length === 3, "the block is malformed");
  // Typed transactions stand in a block as byte strings, legacy ones as they are.
  const transactions = splitRlp(items[1].encoded).map(({ encoded, content }) => content ?? encoded);
  const root = header[FIELD.transactionsRoot];
  check(same(rootOfList(transactions), root), "the transactions are not those of the header");
  const index = transactions.findIndex((raw) => `0x${toHex(keccak256(raw))}` === subject);
  check(index >= 0, "the transaction is not in this block");
  const receipts = proof.receipts.map(fromHex);
  const receiptsRoot = header[FIELD.receiptsRoot];
  check(same(rootOfList(receipts), receiptsRoot), "the receipts are not those of the block");
  check(receipts.length === transactions.length, "there are more or fewer receipts");
  const receipt = receipts[index];
  const fields = decodeRlp(receipt[0] < 0xc0 ? receipt.subarray(1) : receipt);
  check(Array.isArray(fields) && fields.length === 4, "the receipt is malformed");
  return {
    transaction: subject,
    index: String(index),
    status: toBigint(fields[0]) === 1n ? "success" : "failed",
    logs: String(fields[3].length),
  };
}
