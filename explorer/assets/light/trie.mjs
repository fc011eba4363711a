/** Merkle Patricia tries (Ethereum's yellow paper, appendix D): a proof followed, a whole trie computed. */
import { check, concat, decodeRlp, encodeRlp, fromHex, NotProven, same, toHex } from "./bytes.mjs";
import { keccak256 } from "./keccak.mjs";

function nibblesOf(bytes) {
  return toHex(bytes)
    .split("")
    .map((digit) => Number.parseInt(digit, 16));
}

/** Hex-prefix encoding of a path, decoded. */
function readPath(bytes) {
  const [flag = 0, ...rest] = nibblesOf(bytes);
  return { isLeaf: flag >= 2, path: flag % 2 === 1 ? rest : rest.slice(1) };
}

function writePath(path, isLeaf) {
  const flag = (isLeaf ? 2 : 0) + (path.length % 2);
  const nibbles = path.length % 2 === 1 ? [flag, ...path] : [flag, 0, ...path];
  return fromHex(nibbles.map((nibble) => nibble.toString(16)).join(""));
}

/**
 * Follows a proof from a root to a key.
 * @param proof nodes as bytes, root first
 * @returns the value, or undefined where the proof shows that there is none
 * @throws NotProven
 */
export function provenValue(root, key, proof) {
  let path = nibblesOf(key);
  let expected = root;
  for (const [depth, bytes] of proof.entries()) {
    check(same(keccak256(bytes), expected), `node ${depth} of the proof is another one`);
    let node = decodeRlp(bytes);
    // Nodes below 32 bytes stand inside of their parents.
    for (;;) {
      const step = follow(node, path);
      if (step.end !== undefined) {
        check(depth === proof.length - 1, "the proof has nodes too many");
        return step.end.value;
      }
      path = step.path;
      if (!Array.isArray(step.child)) {
        expected = step.child;
        break;
      }
      node = step.child;
    }
    check(expected.length === 32, "a node of the proof is malformed");
  }
  throw new NotProven("the proof ends too early");
}

function follow(node, path) {
  check(Array.isArray(node), "a node of the proof is malformed");
  if (node.length === 17) {
    if (path.length === 0) return { end: { value: emptyAsNone(node[16]) } };
    const child = node[path[0]];
    if (child.length === 0) return { end: { value: undefined } };
    return { child, path: path.slice(1) };
  }
  check(node.length === 2, "a node of the proof is malformed");
  const { isLeaf, path: own } = readPath(node[0]);
  const fits = own.every((nibble, index) => nibble === path[index]);
  if (isLeaf) {
    const isThere = fits && own.length === path.length;
    return { end: { value: isThere ? node[1] : undefined } };
  }
  if (!fits) return { end: { value: undefined } };
  return { child: node[1], path: path.slice(own.length) };
}

function emptyAsNone(value) {
  return value.length === 0 ? undefined : value;
}

/** Root of the trie that has each value under the RLP of its position: receipts of a block. */
export function rootOfList(values) {
  if (values.length === 0) return keccak256(Uint8Array.of(0x80));
  const entries = values.map((value, index) => {
    const digits = index.toString(16);
    const bytes = index === 0 ? "" : digits.length % 2 === 0 ? digits : `0${digits}`;
    return { path: nibblesOf(encodeRlp(fromHex(bytes))), value };
  });
  return keccak256(encodeNode(entries, 0));
}

/** RLP of the node that holds all entries, whose paths are the same up to `depth`. */
function encodeNode(entries, depth) {
  const [first] = entries;
  if (entries.length === 1) {
    return encodeRlp([encodeRlp(writePath(first.path.slice(depth), true)), encodeRlp(first.value)]);
  }
  let shared = depth;
  while (entries.every(({ path }) => path.length > shared && path[shared] === first.path[shared])) {
    shared++;
  }
  if (shared > depth) {
    const path = encodeRlp(writePath(first.path.slice(depth, shared), false));
    return encodeRlp([path, reference(encodeNode(entries, shared))]);
  }
  const groups = Array.from({ length: 16 }, () => []);
  for (const entry of entries) {
    // Keys are RLP: none is the beginning of another one.
    check(entry.path.length > depth, "a key is the beginning of another one");
    groups[entry.path[depth]].push(entry);
  }
  const none = encodeRlp(new Uint8Array(0));
  const children = groups.map((group) =>
    group.length === 0 ? none : reference(encodeNode(group, depth + 1)),
  );
  return encodeRlp([concat(...children), none]);
}

/** How a parent names a child: its hash, or the child itself where that is shorter. */
function reference(node) {
  return node.length < 32 ? node : encodeRlp(keccak256(node));
}
