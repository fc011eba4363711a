/** Random programs for comparisons of engines: any may fail, in any way. */
import { parseAddress } from "../../../../chain/address.js";
import { createRandom } from "../../../helpers/random.js";
import { ALICE, BOB, callCode, CONTRACT, OTHER, push } from "../call-fixture.js";

/** A third contract beside those of the fixture. */
export const THIRD = parseAddress(`0x${"e0".repeat(20)}`);

/** Integers below a bound, from a seed. */
export function randomOf(seed: number): (below: number) => number {
  const random = createRandom(seed);
  return (below) => random.integer(below);
}

/** Opcodes with the number of items they take; most get sensible ones. */
const PLAIN: readonly (readonly [string, number])[] = [
  ...["01", "02", "03", "04", "05", "06", "07", "0a", "0b", "10", "11", "12", "13", "14"].map(
    (opcode) => [opcode, 2] as const,
  ),
  ...["16", "17", "18", "1a", "1b", "1c", "1d", "20", "52", "53", "55", "5d", "a0"].map(
    (opcode) => [opcode, 2] as const,
  ),
  ...["08", "09", "37", "39", "3e", "5e", "a1", "f0"].map((opcode) => [opcode, 3] as const),
  ...["3c", "a2", "f5"].map((opcode) => [opcode, 4] as const),
  ...["15", "19", "31", "35", "3b", "3f", "40", "50", "51", "54", "5c"].map(
    (opcode) => [opcode, 1] as const,
  ),
  ...["30", "32", "33", "34", "36", "38", "3a", "3d", "41", "42", "43", "44", "45", "46"].map(
    (opcode) => [opcode, 0] as const,
  ),
  ...["47", "48", "58", "59", "5a", "5b", "5f", "80", "81", "90", "91"].map(
    (opcode) => [opcode, 0] as const,
  ),
];

/** A program of `length` parts; it may well fail, in any way. */
export function program(random: (below: number) => number, length: number): string {
  const addresses = [CONTRACT, OTHER, THIRD, BOB, ALICE];
  const precompile = () => parseAddress(`0x${"00".repeat(19)}0${1 + random(9)}`);
  const number = (): string => {
    const kind = random(8);
    if (kind < 4) return push(random(80));
    if (kind === 4) return push(random(5_000));
    if (kind === 5) return `73${(addresses[random(5)] ?? BOB).slice(2)}`;
    const bytes = 1 + random(32);
    const hex = Array.from({ length: bytes }, () => random(256).toString(16).padStart(2, "0"));
    return (0x5f + bytes).toString(16) + hex.join("");
  };
  let code = "";
  for (let part = 0; part < length; part++) {
    const kind = random(20);
    if (kind === 0) code += `${push(random(code.length / 2 + 3))}56`;
    else if (kind === 1) code += `${number()}${push(random(code.length / 2 + 12))}57`;
    else if (kind === 2) code += "5b";
    else if (kind <= 4) {
      const to = random(3) === 0 ? precompile() : (addresses[random(5)] ?? BOB);
      const opcode = (["f1", "f2", "f4", "fa"] as const)[random(4)] ?? "f1";
      const value = random(4) === 0 ? BigInt(random(9)) : 0n;
      const gas = push(random(3) === 0 ? random(3_000) : 60_000);
      const inBytes = random(300);
      code += `${callCode(opcode, to, { value, gas, inBytes, outBytes: random(200) })}50`;
    } else if (kind === 5) {
      const init = (["60fe5f5360015ff3", "5f5ffd", "fe", "00", "61ffff5ff3"] as const)[random(5)];
      const size = (init?.length ?? 0) / 2;
      code += `${push(BigInt(`0x${init}`))}5f52${push(size)}${push(32 - size)}${push(random(3))}f0`;
    } else if (kind === 6 && random(6) === 0) {
      code += `${number()}${["ff", "00", "fe", "0c"][random(4)]}`;
    } else if (kind === 6) code += `${push(random(64))}5f${["fd", "f3"][random(2)]}`;
    else {
      const [opcode, taken] = PLAIN[random(PLAIN.length)] ?? ["5b", 0];
      for (let item = 0; item < taken; item++) if (random(12) > 0) code += number();
      code += opcode;
    }
  }
  return code;
}
