/** Lines of clients: turns from one to the next, and the longest loses where several share the room. */
import { expect, it } from "@jest/globals";
import { ClientLines } from "../../../../runtime/turns/client-lines.js";

type Item = ReturnType<typeof item>;
const item = (client: string, name: string) => ({ client, name });

it("share a room: the last of the longest goes, of equals the newest's own", () => {
  const [few, many] = [new ClientLines<Item>(), new ClientLines<Item>()];
  const sharing = [few, many];
  for (const name of ["1", "2", "3"]) many.add(item("a", name));
  const newest = item("a", "4");
  few.add(newest);
  expect(few.refuseOne(newest, sharing)).toEqual(item("a", "3"));
  few.add(item("b", "5"));
  few.add(item("b", "6"));
  const last = item("b", "7");
  few.add(last);
  expect(few.refuseOne(last, sharing)).toBe(last);
  expect(few.refuseOne(newest, sharing)).toEqual(item("b", "6"));
  expect([few.size, many.size]).toEqual([2, 2]);
  expect([few.next(), few.next(), few.next()]).toEqual([newest, item("b", "5"), undefined]);
  many.remove(item("a", "1"));
  expect(many.clear()).toEqual([item("a", "1"), item("a", "2")]);
  expect(many.size).toBe(0);
});
