/** JSON of messages is read as it is written, or refused: what is signed over it is what it says. */
import { expect, it } from "@jest/globals";
import { JsonReader } from "../../../chain/protobuf/json-reader.js";
import { loadDescriptors } from "../../../runtime/files/descriptor-set.js";

const types = loadDescriptors();
const reader = new JsonReader(types);
const BODY = types.message("cosmos.tx.v1beta1.TxBody");

const read = (text: string) => reader.message(BODY, JSON.parse(text));

it("takes no number that JavaScript has rounded, for another one than was written", () => {
  const exact = [
    ["9007199254740991", 2n ** 53n - 1n],
    ['"9007199254740993"', 2n ** 53n + 1n],
    ['"18446744073709551615"', 2n ** 64n - 1n],
  ] as const;
  for (const [text, timeout_height] of exact) {
    expect(read(`{"timeout_height":${text}}`)).toEqual({ timeout_height });
  }
  for (const text of ["9007199254740993", "18446744073709551615", "1e300", "1.5", "-1"]) {
    expect(() => read(`{"timeout_height":${text}}`)).toThrow("timeout_height");
  }
});

it("takes no time that no calendar has, for a later one", () => {
  const timed = (text: string) => read(`{"timeout_timestamp":"${text}"}`);
  expect(timed("2028-02-29T23:59:59.5Z")).toEqual({
    timeout_timestamp: { seconds: 1_835_481_599n, nanos: 500_000_000 },
  });
  for (const day of ["2027-02-29T00:00:00Z", "2027-02-30T00:00:00Z", "2027-03-01T24:00:00Z"]) {
    expect(() => timed(day)).toThrow("a time cannot be read");
  }
});

it("takes no field that is there in both of its names, for the one behind", () => {
  const text = '"memo":"1","timeoutHeight":"7"';
  expect(read(`{${text},"timeout_height":null}`)).toEqual({ memo: "1", timeout_height: 7n });
  for (const other of ['"timeout_height":"7"', '"timeout_height":"9"']) {
    expect(() => read(`{${text},${other}}`)).toThrow("timeout_height is there twice");
    expect(() => read(`{${other},${text}}`)).toThrow("timeout_height is there twice");
  }
});
