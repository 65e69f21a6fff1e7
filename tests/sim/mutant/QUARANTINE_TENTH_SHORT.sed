# daemon/core/quorum.c
s|return longest + drift_us(2 \* longest) + DRIFT_SLACK_US;|return (longest + drift_us(2 * longest) + DRIFT_SLACK_US) * 9 / 10;|
