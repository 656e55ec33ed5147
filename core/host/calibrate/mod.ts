/** Calibration of pruned attention: made once for a model, kept beside it. */
export { applyCalibration, calibrate, type CalibrateOptions } from "./calibrate.ts";
export { type Calibration, decodeCalibration, encodeCalibration } from "./calibration.ts";
export { calibrationPath, loadCalibration, saveCalibration } from "./calibration_file.ts";
export { modelFingerprint } from "./fingerprint.ts";
