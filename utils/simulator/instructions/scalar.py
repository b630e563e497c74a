"""The Scalar Engine: functions of one value."""
