//! Figures with their intervals, Parquet series and the HTML report.
