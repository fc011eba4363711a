/** Entry of the node's process. */
import { runProcess } from "../runtime/lifecycle.js";
import { NODE_PROCESS } from "./process.js";

runProcess(NODE_PROCESS);
