/** Flags of the programs beside `npm test`: a word that is not known is told with what there is. */
import { parseArgs } from "node:util";

/**
 * Reads the words behind a program's name. `--help` shows the usage and ends the process with 0; what is not
 * known, or cannot be meant, ends it with 2.
 * @param usage what there is, as text
 * @param options as `parseArgs` of node:util takes them
 * @param numbers names of those that are a whole number from 1 on
 * @param lists names of those that are several of them, with commas between
 * @returns the values by their names
 */
export function readFlags(usage, options, { numbers = [], lists = [] }) {
  const refuse = (text) => {
    console.error(`causeway: ${text}\n\n${usage}`);
    process.exit(2);
  };
  const values = parsed(options, refuse);
  if (values.help) {
    console.log(usage);
    process.exit(0);
  }
  const isNumber = (text) => /^[1-9][0-9]{0,9}$/.test(text);
  for (const name of [...numbers, ...lists]) {
    const value = values[name];
    const given = value === undefined ? [] : lists.includes(name) ? value.split(",") : [value];
    if (given.every(isNumber)) continue;
    const what = lists.includes(name) ? "is made of whole numbers" : "is a whole number";
    refuse(`--${name} ${what} from 1 on, not "${value}"`);
  }
  return values;
}

function parsed(options, refuse) {
  try {
    return parseArgs({ options: { ...options, help: { type: "boolean", short: "h" } } }).values;
  } catch (error) {
    // In words that name the flag, and how to write what was meant.
    return refuse(error.message);
  }
}
